// A command in the steady state allocates nothing.
#include <gtest/gtest.h>

#include <string>

#include "doors/resp/resp_door.h"
#include "testing/allocation_count.h"
#include "testing/simulated_engine.h"
#include "wire/resp/command_parser.h"

namespace weir::doors::resp {
namespace {

// By one connection and one buffer, as serve_resp.cc has them.
int64_t AllocationsOf(const std::string& commands) {
  SimulatedEngine weir("limits: [{name: a, per: [client], rate: 1000/s}]");
  RespDoor door(*weir.worker, "0.1.0");
  Session session =
      door.NewSession(net::Endpoint::Parse("127.0.0.1:40000").value(), weir.clock.MonotonicNs());
  weir::resp::CommandParser parser;
  wire::Buffer out;
  int64_t before = 0;
  for (int round = 0; round < 20; ++round) {
    if (round == 10) before = allocation_count;
    out.Clear();
    std::string_view input = commands;
    const auto instant = door.Tick(weir.clock.MonotonicNs(), weir.clock.RealtimeNs());
    while (parser.Next(input) == weir::resp::CommandParser::State::kCommand) {
      door.Answer(session, parser.words(), instant, out);
      input.remove_prefix(parser.consumed());
    }
    EXPECT_TRUE(input.empty());
    weir.Advance(std::chrono::milliseconds(1));
  }
  return allocation_count - before;
}

TEST(RespAllocationTest, ACommandAllocatesNothing) {
  EXPECT_EQ(AllocationsOf("CL.THROTTLE k 15 30 60\r\nCL.THROTTLE k 0 30 60 3\r\n"), 0);
  EXPECT_EQ(AllocationsOf("WEIR.CHECK client alice path /v1/chat COST requests 2 tokens 5\r\n"), 0);
  EXPECT_EQ(AllocationsOf("*1\r\n$4\r\nPING\r\nECHO a\r\nSELECT 0\r\n"), 0);
}

}  // namespace
}  // namespace weir::doors::resp
