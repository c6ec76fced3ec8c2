// What a Client is made of: admits calls, sends each where it belongs, and follows what servers
// answer until there is a reply, an error or no time left.
//
// Thread safety: the loop's thread only. Ownership: held by the Client and by its calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/task.h"
#include "redis/call.h"
#include "redis/client.h"
#include "redis/reply_error.h"
#include "redis/shared.h"
#include "redis/topology.h"
#include "weir/result.h"

namespace weir::redis {

class Core : public std::enable_shared_from_this<Core> {
 public:
  static std::shared_ptr<Core> Create(net::EventLoop& loop, net::Resolver& resolver,
                                      ClientOptions options);
  // Ends all calls with kCancelled.
  void Close();

  static Task<Result<resp::Value>> Perform(std::shared_ptr<Core> core, Request request,
                                           std::string_view slot_key, CallOptions options);

  uint16_t GroupOf(std::string_view key) const { return topology_->GroupOf(key); }
  Client::Stats stats() const;
  const std::string& last_fault() const { return shared_->last_fault; }

 private:
  // A call on its way, over all of its attempts.
  struct Journey;
  class Admission;

  explicit Core(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<Node> Dispatch(Call& call, std::string_view slot_key, Journey& journey);
  // Prepares the next attempt after an error reply. False: there is nothing more to try.
  bool Follow(Journey& journey, Node& node, const ErrorMeaning& meaning, std::string_view text);
  bool ShouldSendText(const Node& node, const Request& request, int misses);
  // A server that is slower than the deadline says too late that it lacks a script: the next call
  // brings the text. What such an answer is to be told to.
  Call::OnLateError LateErrorOf(const Node& node, const Request& request);

  const std::shared_ptr<Shared> shared_;
  std::shared_ptr<Topology> topology_;
  CallQueue parked_;  // Calls that have no node to go to yet.
  size_t calls_ = 0;
  size_t bytes_ = 0;
  uint64_t redirects_ = 0;
  uint64_t script_loads_ = 0;
  // When the text of a script was last sent to a node: others need not send it as well.
  std::map<std::string, int64_t> text_sent_ns_;
  std::set<std::string> texts_missed_;  // Scripts that a node has said too late to lack.
  bool closed_ = false;
};

}  // namespace weir::redis
