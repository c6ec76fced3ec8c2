// What is said to one Sentinel after the handshake: who the master is, who the other Sentinels are,
// and to tell when the master changes. Pure: replies in, commands out.
//
//   SentinelSession session("mymaster", /*protocol=*/3);
//   session.Start(out);
//   if (session.OnReply(reply, out) == SentinelSession::Event::kMaster) Use(session.master());
//
// In RESP3 messages come as pushes, and questions may go on; in RESP2 a connection that has
// subscribed answers no more questions, so it must be made anew to ask again.
// Thread safety: none; one owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "redis/client_options.h"
#include "weir/result.h"
#include "wire/buffer.h"
#include "wire/resp/value.h"

namespace weir::redis {

class SentinelSession {
 public:
  enum class Event : uint8_t {
    kNone,
    kMaster,  // master() was told; it may be the one known before.
    kFailed,  // error() says why; try another Sentinel.
  };

  SentinelSession(std::string master_name, int protocol)
      : master_name_(std::move(master_name)), protocol_(protocol) {}

  // Appends the questions and the subscription.
  void Start(wire::Buffer& out);
  // Every reply, pushes too, in order.
  Event OnReply(const resp::Value& reply);
  // Asks for the master again. False when this connection cannot.
  bool AskAgain(wire::Buffer& out);

  const Address& master() const { return master_; }
  const std::vector<Address>& sentinels() const { return sentinels_; }  // The other ones.
  bool subscribed() const { return subscribed_; }
  bool waiting() const { return !expected_.empty(); }  // For answers to questions.
  const Error& error() const { return error_; }

 private:
  enum class Expected : uint8_t { kMaster, kSentinels, kSubscription };
  Event OnMaster(const resp::Value& reply);
  void OnSentinels(const resp::Value& reply);
  Event OnMessage(const resp::Value& message);
  Event Fail(ErrorCode code, std::string message);

  const std::string master_name_;
  const int protocol_;
  std::vector<Expected> expected_;  // Oldest first.
  bool subscribed_ = false;
  Address master_;
  std::vector<Address> sentinels_;
  Error error_;
};

}  // namespace weir::redis
