// What the tests of the client against servers share: a loop, names, a script, and calls in one
// line.
//
//   ClientWorld world;
//   world.Run([](ClientWorld& world) -> Task<void> {
//     auto client = world.Connect(url);
//     Result<resp::Value> reply = co_await world.Add(*client, "k", 1);
//   });
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/resolver.h"
#include "redis/client.h"
#include "testing/loop_fixture.h"

namespace weir::redis {

inline constexpr int64_t kMs = 1'000'000;
inline constexpr int64_t kSecond = 1'000 * kMs;

struct Script {
  explicit Script(std::string the_text) : text(std::move(the_text)) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha1(), nullptr);
    for (unsigned int i = 0; i < size; ++i) {
      for (const int nibble : {digest[i] >> 4, digest[i] & 15}) {
        sha1.push_back("0123456789abcdef"[nibble]);
      }
    }
  }
  const std::string text;
  std::string sha1;
};

class ClientWorld {
 public:
  net::EventLoop& loop() { return fixture_.loop(); }
  net::Resolver& resolver() { return resolver_; }
  int64_t In(int64_t duration_ns) { return loop().now_ns() + duration_ns; }

  // Runs a coroutine function to its end. It must not capture what ends before it.
  void Run(Task<void> (*scenario)(ClientWorld&), int64_t bound_ns = 30 * kSecond) {
    fixture_.RunTask(scenario(*this), bound_ns);
  }
  template <typename Argument>
  void Run(Task<void> (*scenario)(ClientWorld&, Argument&), Argument& argument,
           int64_t bound_ns = 30 * kSecond) {
    fixture_.RunTask(scenario(*this, argument), bound_ns);
  }

  ClientOptions Options(const std::string& url) {
    ClientOptions options = ParseUrl(url).value();
    options.on_notice = [this](std::string_view sentence) { notices.emplace_back(sentence); };
    return options;
  }
  std::unique_ptr<Client> Connect(ClientOptions options) {
    return Client::Create(loop(), resolver_, std::move(options));
  }
  std::unique_ptr<Client> Connect(const std::string& url) { return Connect(Options(url)); }

  // Adds to a counter by a script and gives the sum.
  Task<Result<resp::Value>> Add(Client& client, std::string key, int64_t amount,
                                int64_t timeout_ns = 5 * kSecond) {
    const std::string text = std::to_string(amount);
    const std::string_view keys[] = {key};
    const std::string_view args[] = {text};
    Task<Result<resp::Value>> call =
        client.RunScript(add_.sha1, add_.text, keys, args, In(timeout_ns));
    Result<resp::Value> reply = co_await std::move(call);
    co_return reply;
  }
  // One command, its words between blanks.
  Task<Result<resp::Value>> Say(Client& client, std::string command, std::string slot_key = "",
                                int64_t timeout_ns = 5 * kSecond) {
    std::vector<std::string_view> words;
    for (std::string_view left = command; !left.empty();) {
      const size_t blank = std::min(left.find(' '), left.size());
      words.push_back(left.substr(0, blank));
      left.remove_prefix(std::min(blank + 1, left.size()));
    }
    Task<Result<resp::Value>> call = client.Call(words, slot_key, In(timeout_ns));
    Result<resp::Value> reply = co_await std::move(call);
    co_return reply;
  }

  const Script& add() const { return add_; }

  std::vector<std::string> notices;

 private:
  net::Resolver resolver_;  // Outlives the loop's running.
  testing::LoopFixture fixture_;
  const Script add_{"return redis.call('INCRBY', KEYS[1], ARGV[1])"};
};

// A reply's parts; a failed call fails the test and says why.
inline int64_t IntegerOf(const Result<resp::Value>& reply) {
  EXPECT_TRUE(reply.has_value()) << reply.error().message;
  return reply ? reply->integer : INT64_MIN;
}
inline std::string TextOf(const Result<resp::Value>& reply) {
  EXPECT_TRUE(reply.has_value()) << reply.error().message;
  return reply ? reply->text : "";
}
inline Error FaultOf(const Result<resp::Value>& reply) {
  return reply ? Error{ErrorCode::kInternal, "(no error)"} : reply.error();
}

// Many calls at once: how many are under way, and how they ended.
struct Tally {
  int under_way = 0;
  int ok = 0;
  std::vector<Error> errors;
  std::vector<int64_t> sums;

  int Count(ErrorCode code) const {
    int count = 0;
    for (const Error& error : errors) count += error.code == code ? 1 : 0;
    return count;
  }
};

inline Task<void> AddInto(ClientWorld& world, Client& client, std::string key, int64_t timeout_ns,
                          Tally& tally) {
  ++tally.under_way;
  Result<resp::Value> reply = co_await world.Add(client, std::move(key), 1, timeout_ns);
  --tally.under_way;
  if (reply) {
    ++tally.ok;
    tally.sums.push_back(reply->integer);
  } else {
    tally.errors.push_back(reply.error());
  }
}

// Until no call of the tally is under way.
inline Task<void> Join(ClientWorld& world, const Tally& tally) {
  while (tally.under_way > 0) co_await world.loop().SleepFor(1 * kMs);
}

inline std::string First(const std::vector<Error>& errors) {
  return errors.empty() ? "" : errors.front().message;
}

}  // namespace weir::redis
