// A blocking connection to a Redis or Valkey server, for tests that set a scene: one command, one
// reply.
//
//   RedisConsole console("unix:/tmp/x/redis.sock");
//   console.Call({"SET", "k", "1"});
//   EXPECT_EQ(console.Call({"GET", "k"}).text, "1");
//
// Thread safety: none. A server that is away, or silent for ten seconds, throws, which fails the
// test.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/endpoint.h"
#include "wire/resp/command_writer.h"
#include "wire/resp/reply_parser.h"

namespace weir::testing {

class RedisConsole {
 public:
  // "127.0.0.1:6379" or "unix:/path".
  explicit RedisConsole(const std::string& address) : address_(address) {
    const net::Endpoint endpoint = net::Endpoint::Parse(address).value();
    fd_ = socket(endpoint.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd_, endpoint.address(), endpoint.length()) != 0) Fail("connect");
  }
  ~RedisConsole() {
    if (fd_ >= 0) close(fd_);
  }
  RedisConsole(RedisConsole&& other) noexcept
      : address_(other.address_), fd_(std::exchange(other.fd_, -1)) {}
  RedisConsole(const RedisConsole&) = delete;
  RedisConsole& operator=(const RedisConsole&) = delete;

  resp::Value Call(std::initializer_list<std::string_view> words) {
    return Call(std::vector<std::string_view>(words));
  }
  resp::Value Call(const std::vector<std::string_view>& words) {
    Send(words);
    return Read();
  }
  // The same in two steps, for pipelines and for commands that take their time.
  void Send(const std::vector<std::string_view>& words) {
    wire::Buffer out;
    resp::AppendCommand(out, words);
    std::string_view left = out.View();
    while (!left.empty()) {
      const ssize_t sent = send(fd_, left.data(), left.size(), MSG_NOSIGNAL);
      if (sent <= 0) Fail("send");
      left.remove_prefix(static_cast<size_t>(sent));
    }
  }
  resp::Value Read() {
    for (;;) {
      std::string_view input(buffer_ + begin_, end_ - begin_);
      const resp::ReplyParser::State state = parser_.Next(input);
      begin_ = end_ - input.size();
      if (state == resp::ReplyParser::State::kValue) return parser_.Take();
      if (state == resp::ReplyParser::State::kBroken) Fail("not RESP");
      const ssize_t got = recv(fd_, buffer_, sizeof buffer_, 0);
      if (got <= 0) Fail("read");
      begin_ = 0;
      end_ = static_cast<size_t>(got);
    }
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw std::runtime_error(address_ + ": " + what + ": " + std::strerror(errno));
  }

  std::string address_;
  int fd_ = -1;
  resp::ReplyParser parser_;
  char buffer_[16384];
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace weir::testing
