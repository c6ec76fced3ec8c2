// Asks a RespDoor without a socket: cuts a text into commands as a connection does, and shows the
// replies: [0,16,15,-1,2], "PONG" for simple strings and bulk strings alike, -ERR ..., nil.
//
// Thread safety: none.
//
//   RespClient client(weir);
//   EXPECT_EQ(client.Ask("CL.THROTTLE u 15 30 60"), "[0,16,15,-1,2]");
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "doors/resp/resp_door.h"
#include "gtest/gtest.h"
#include "testing/simulated_engine.h"
#include "wire/resp/command_parser.h"
#include "wire/resp/reply_parser.h"

namespace weir {

class RespClient {
 public:
  explicit RespClient(SimulatedEngine& weir)
      : weir_(weir), door_(*weir.worker, "0.1.0"), session_(NewSession()) {}

  doors::resp::Session& session() { return session_; }
  void Reconnect() { session_ = NewSession(); }

  // One inline command, by its only reply.
  std::string Ask(const std::string& line) {
    const std::vector<std::string> replies = Send(line + "\r\n");
    EXPECT_EQ(replies.size(), 1u) << line;
    return replies.empty() ? "" : replies[0];
  }
  // One command of words with any bytes.
  std::string Ask(std::initializer_list<std::string> words) {
    std::string text = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words)
      text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    const std::vector<std::string> replies = Send(text);
    EXPECT_EQ(replies.size(), 1u);
    return replies.empty() ? "" : replies[0];
  }
  // Whole commands; the replies to them in order.
  std::vector<std::string> Send(std::string_view commands) {
    resp::CommandParser parser;
    wire::Buffer out;
    const auto instant = door_.Tick(weir_.clock.MonotonicNs(), weir_.clock.RealtimeNs());
    while (parser.Next(commands) == resp::CommandParser::State::kCommand) {
      if (!parser.words().empty()) door_.Answer(session_, parser.words(), instant, out);
      commands.remove_prefix(parser.consumed());
    }
    return Replies(out.View());
  }

 private:
  doors::resp::Session NewSession() {
    return door_.NewSession(net::Endpoint::Parse("127.0.0.1:40000").value(),
                            weir_.clock.MonotonicNs());
  }
  static std::vector<std::string> Replies(std::string_view text) {
    resp::ReplyParser parser;
    std::vector<std::string> replies;
    while (parser.Next(text) == resp::ReplyParser::State::kValue)
      replies.push_back(Show(parser.Take()));
    EXPECT_EQ(text, "");
    EXPECT_EQ(parser.fault(), "");
    return replies;
  }
  static std::string Show(const resp::Value& value) {
    switch (value.type) {
      case resp::Type::kNull:
        return "nil";
      case resp::Type::kInteger:
        return std::to_string(value.integer);
      case resp::Type::kError:
        return "-" + value.text;
      case resp::Type::kArray:
      case resp::Type::kMap:
        break;
      default:
        return value.text;
    }
    std::string shown;
    for (const resp::Value& item : value.items) shown += (shown.empty() ? "" : ",") + Show(item);
    return (value.type == resp::Type::kMap ? "{" : "[") + shown +
           (value.type == resp::Type::kMap ? "}" : "]");
  }

  SimulatedEngine& weir_;
  doors::resp::RespDoor door_;
  doors::resp::Session session_;
};

}  // namespace weir
