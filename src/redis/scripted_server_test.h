// A server that says what a test wants, on the test's own loop.
//
//   ScriptedServer server(loop, [](const Words& words, int connection) {
//     return words[0] == "HELLO" ? kHello : "+OK\r\n";
//   });
//   server.CloseAfter(17);      // bytes, of the next connection
//
// Thread safety: the loop's thread only.
#pragma once

#include <climits>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/listener.h"
#include "net/stream.h"
#include "wire/resp/reply_parser.h"

namespace weir::redis {

using Words = std::vector<std::string>;

inline const std::string kHelloReply = "%1\r\n$5\r\nproto\r\n:3\r\n";

class ScriptedServer {
 public:
  // Gives the bytes that answer a command; "close" ends the connection, "" says nothing.
  using Answer = std::function<std::string(const Words& words, int connection)>;

  ScriptedServer(net::EventLoop& loop, Answer answer) : state_(std::make_shared<State>()) {
    state_->answer = std::move(answer);
    listener_ = net::Listener::Open(loop, net::Endpoint::Parse("127.0.0.1:0").value(),
                                    [state = state_, &loop](std::unique_ptr<net::Stream> stream) {
                                      loop.Spawn(Serve(state, std::move(stream)));
                                    })
                    .value();
  }
  ~ScriptedServer() { state_->closed = true; }

  std::string address() const { return listener_->endpoint().ToString(); }
  int port() const { return listener_->endpoint().port(); }
  std::string url() const { return "redis://" + address(); }
  // The next connection is closed after so many bytes of answers.
  void CloseAfter(int64_t bytes) { state_->close_after.push_back(bytes); }

  int accepted() const { return state_->accepted; }
  int open() const { return state_->open; }
  int most_open() const { return state_->most_open; }
  int reads() const { return state_->reads; }
  // Every command, in order, but for HELLO.
  const std::vector<Words>& commands() const { return state_->commands; }
  int CountOf(const Words& words) const {
    int count = 0;
    for (const Words& one : state_->commands) count += one == words ? 1 : 0;
    return count;
  }

 private:
  struct State {
    Answer answer;
    std::deque<int64_t> close_after;
    int accepted = 0;
    int open = 0;
    int most_open = 0;
    int reads = 0;
    std::vector<Words> commands;
    bool closed = false;
  };

  static Task<void> Serve(std::shared_ptr<State> state, std::unique_ptr<net::Stream> stream) {
    const int connection = ++state->accepted;
    state->most_open = std::max(state->most_open, ++state->open);
    int64_t left = INT64_MAX;
    if (!state->close_after.empty()) {
      left = state->close_after.front();
      state->close_after.pop_front();
    }
    resp::ReplyParser parser;
    std::vector<char> buffer(1 << 20);
    bool goes_on = true;
    while (goes_on) {
      const net::IoResult got = co_await stream->Read(buffer);
      if (!got.ok() || state->closed) break;
      ++state->reads;
      std::string_view input(buffer.data(), got.bytes);
      std::string out;
      while (goes_on && parser.Next(input) == resp::ReplyParser::State::kValue) {
        Words words;
        for (const resp::Value& word : parser.Take().items) words.push_back(word.text);
        if (words.at(0) != "HELLO") state->commands.push_back(words);
        const std::string answer = state->answer(words, connection);
        goes_on = answer != "close";
        if (goes_on) out += answer;
        if (std::cmp_greater_equal(out.size(), left)) {
          out.resize(static_cast<size_t>(left));
          goes_on = false;
        }
      }
      left -= static_cast<int64_t>(out.size());
      if (out.empty()) continue;
      const net::IoResult sent = co_await stream->Write(out);
      if (!sent.ok()) break;
    }
    --state->open;
  }

  std::shared_ptr<State> state_;
  std::unique_ptr<net::Listener> listener_;
};

}  // namespace weir::redis
