#include "cli/mock_upstream/knobs.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::mock {
namespace {

Result<Knobs> Read(const std::string& request, const Knobs& defaults = {}) {
  http1::RequestHead head;
  EXPECT_TRUE(http1::ParseRequestHead(request, {}, head).complete());
  return ReadKnobs(head, defaults);
}

TEST(Knobs, HeadersWinOverTheQueryAndTheQueryOverDefaults) {
  const Knobs defaults{.latency_ms = 1, .pace_ms = 2, .events = 3};
  const Result<Knobs> knobs = Read(
      "GET /v1/models?a=b&x-mock-pace-ms=20&x-mock-events=30 HTTP/1.1\r\nHost: a\r\nX-Mock-Events: "
      "300\r\n\r\n",
      defaults);
  ASSERT_TRUE(knobs.has_value());
  EXPECT_EQ(knobs->latency_ms, 1);
  EXPECT_EQ(knobs->pace_ms, 20);
  EXPECT_EQ(knobs->events, 300);
}

TEST(Knobs, UnknownOnesAndWrongNumbersAreRefused) {
  const Result<Knobs> unknown = Read("GET / HTTP/1.1\r\nHost: a\r\nx-mock-speed: 1\r\n\r\n");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message, "x-mock-speed: no such knob");
  EXPECT_FALSE(Read("GET / HTTP/1.1\r\nHost: a\r\nx-mock-events: 5x\r\n\r\n").has_value());
  EXPECT_FALSE(Read("GET / HTTP/1.1\r\nHost: a\r\nx-mock-events: -2\r\n\r\n").has_value());
}

TEST(Knobs, OnlyWhatIsOnOrOffMayStandAlone) {
  Knobs knobs;
  EXPECT_TRUE(SetKnob(knobs, "chunked").has_value());
  EXPECT_TRUE(knobs.chunked);
  EXPECT_TRUE(SetKnob(knobs, "latency-ms=200").has_value());
  EXPECT_EQ(knobs.latency_ms, 200);
  EXPECT_EQ(SetKnob(knobs, "latency-ms").error().message,
            "a value is missing, as in latency-ms=100");
  EXPECT_EQ(SetKnob(knobs, "headers").error().message,
            "a value is missing, as in headers='x-a: 1'");
  EXPECT_EQ(SetKnob(knobs, "latency").error().message, "x-mock-latency: no such knob");
  EXPECT_EQ(SetKnob(knobs, "latencyms=1").error().message,
            "x-mock-latencyms: no such knob; did you mean `latency-ms`?");
  EXPECT_EQ(knobs.latency_ms, 200);
  EXPECT_FALSE(Read("GET /?x-mock-latency-ms HTTP/1.1\r\nHost: a\r\n\r\n").has_value());
  EXPECT_TRUE(Read("GET /?x-mock-chunked HTTP/1.1\r\nHost: a\r\n\r\n")->chunked);
}

TEST(Knobs, FieldListsAreSplit) {
  std::vector<std::string> seen;
  ForEachField("X-A: 1|X-B:2|broken|X-C: a:b", [&](std::string_view name, std::string_view value) {
    seen.push_back(std::string(name) + "=" + std::string(value));
  });
  EXPECT_EQ(seen, (std::vector<std::string>{"X-A=1", "X-B=2", "X-C=a:b"}));
}

}  // namespace
}  // namespace weir::mock
