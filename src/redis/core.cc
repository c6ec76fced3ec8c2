#include "redis/core.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace weir::redis {
namespace {

constexpr int kRedirectsMax = 16;
constexpr int64_t kWaitMinNs = 2'000'000;
constexpr int64_t kWaitMaxNs = 50'000'000;
constexpr int64_t kTextIsOnItsWayNs = 50'000'000;
constexpr size_t kTextsMax = 1024;

std::string TextKey(const Node& node, const Request& request) {
  return node.address().ToString() + " " + std::string(request.sha1);
}

}  // namespace

struct Core::Journey {
  Request& request;
  std::optional<Address> target;  // Where a redirect leads.
  int redirects = 0;
  int script_misses = 0;
  int64_t wait_ns = 0;  // Before the next attempt.
  int64_t next_wait_ns = kWaitMinNs;

  void Wait() {
    wait_ns = next_wait_ns;
    next_wait_ns = std::min(kWaitMaxNs, next_wait_ns * 2);
  }
};

// A place in the client's bounds, for the whole journey of a call.
class Core::Admission {
 public:
  Admission(Core& core, size_t bytes) : core_(core), bytes_(bytes) {
    const ClientOptions& options = core_.shared_->options;
    granted_ = core_.calls_ < options.queue_calls_max &&
               bytes_ <= options.queue_bytes_max - std::min(options.queue_bytes_max, core_.bytes_);
    if (!granted_) return;
    ++core_.calls_;
    core_.bytes_ += bytes_;
  }
  ~Admission() {
    if (!granted_) return;
    --core_.calls_;
    core_.bytes_ -= bytes_;
  }
  Admission(const Admission&) = delete;
  bool granted() const { return granted_; }

 private:
  Core& core_;
  const size_t bytes_;
  bool granted_ = false;
};

std::shared_ptr<Core> Core::Create(net::EventLoop& loop, net::Resolver& resolver,
                                   ClientOptions options) {
  options.connections = std::clamp(options.connections, 1, 64);
  std::shared_ptr<Core> core(
      new Core(std::make_shared<Shared>(loop, resolver, std::move(options))));
  Core* const raw = core.get();  // Close ends the topology's use of it.
  core->topology_ =
      Topology::Create(core->shared_, [raw] { raw->parked_.FinishAll(Call::Outcome::kRoute, {}); });
  return core;
}

void Core::Close() {
  closed_ = true;
  topology_->Close();
  parked_.FinishAll(Call::Outcome::kCancelled, {});
}

std::shared_ptr<Node> Core::Dispatch(Call& call, std::string_view slot_key, Journey& journey) {
  std::shared_ptr<Node> node;
  if (journey.target) node = topology_->At(*journey.target);
  if (node == nullptr) {
    journey.request.asking = false;  // That was for the target.
    node = topology_->Pick(slot_key);
  }
  journey.target.reset();
  if (node != nullptr) {
    if (!texts_missed_.empty() && texts_missed_.erase(TextKey(*node, journey.request)) > 0) {
      journey.request.send_text = true;
      ++script_loads_;
    }
    call.on_late_error = LateErrorOf(*node, journey.request);
    node->Enqueue(call);
  } else {
    parked_.PushBack(call);
  }
  shared_->Watch(call);
  return node;
}

// A script that many calls miss at once is sent once: the others ask again behind it, and send it
// too only if they miss it twice (it went over another connection, or was flushed again).
bool Core::ShouldSendText(const Node& node, const Request& request, int misses) {
  const int64_t now_ns = shared_->loop.now_ns();
  if (text_sent_ns_.size() >= kTextsMax) text_sent_ns_.clear();
  int64_t& sent_ns = text_sent_ns_.try_emplace(TextKey(node, request), INT64_MIN / 2).first->second;
  if (misses < 2 && now_ns - sent_ns < kTextIsOnItsWayNs) return false;
  sent_ns = now_ns;
  return true;
}

Call::OnLateError Core::LateErrorOf(const Node& node, const Request& request) {
  if (request.text.empty() || request.send_text) return nullptr;
  return [self = weak_from_this(), key = TextKey(node, request)](std::string_view text) {
    const std::shared_ptr<Core> core = self.lock();
    if (core == nullptr || MeaningOf(text).remedy != Remedy::kSendText) return;
    if (core->texts_missed_.size() < kTextsMax) core->texts_missed_.insert(key);
  };
}

bool Core::Follow(Journey& journey, Node& node, const ErrorMeaning& meaning,
                  std::string_view text) {
  Request& request = journey.request;
  const bool asked = std::exchange(request.asking, false);
  switch (meaning.remedy) {
    case Remedy::kNone:
      return false;
    case Remedy::kReconnect:
      node.Renew();
      return false;
    case Remedy::kSendText:
      if (request.text.empty() || request.send_text) return false;
      request.send_text = ShouldSendText(node, request, ++journey.script_misses);
      if (request.send_text) ++script_loads_;
      journey.target = node.address();  // Where an ASK or MOVED may have led.
      request.asking = asked;
      return true;
    case Remedy::kFollow:
    case Remedy::kFollowOnce: {
      if (!topology_->IsCluster()) return false;
      const std::optional<Redirect> redirect = ParseRedirect(text, node.address());
      topology_->OnError(node, meaning, text);
      if (!redirect || ++journey.redirects > kRedirectsMax) return false;
      ++redirects_;
      journey.target = redirect->target;
      request.asking = meaning.kind == ErrorKind::kAsk;
      request.send_text = false;
      // Two nodes that name each other are in the middle of a change.
      if (journey.redirects > 3) journey.Wait();
      return true;
    }
    case Remedy::kWait:
      topology_->OnError(node, meaning, text);
      journey.Wait();
      return true;
    case Remedy::kFindMaster:
      topology_->OnError(node, meaning, text);
      if (!topology_->MayFindMaster()) return false;
      journey.Wait();
      return true;
  }
  return false;
}

Task<Result<resp::Value>> Core::Perform(std::shared_ptr<Core> core, Request request,
                                        std::string_view slot_key, CallOptions options) {
  Shared& shared = *core->shared_;
  Delivery unasked;
  Delivery& delivery = options.delivery != nullptr ? *options.delivery : unasked;
  delivery = Delivery::kNotCarriedOut;
  const Admission admission(*core, request.Bytes());
  if (!admission.granted()) {
    co_return MakeError(ErrorCode::kResourceExhausted,
                        "too many calls to the store wait for an answer");
  }
  Journey journey{.request = request};
  for (;;) {
    if (core->closed_) co_return MakeError(ErrorCode::kCancelled, "the store's client was closed");
    AwaitedCall call(shared.loop, request, options.deadline_ns);
    call.on_late = std::move(options.on_late);
    const std::shared_ptr<Node> node = core->Dispatch(call, slot_key, journey);
    co_await call;
    options.on_late = std::move(call.on_late);
    switch (call.outcome()) {
      case Call::Outcome::kReply:
        break;
      case Call::Outcome::kRoute:
        continue;
      case Call::Outcome::kNotSent:
        co_return std::unexpected(Error{ErrorCode::kUnavailable, call.fault().message});
      case Call::Outcome::kLost:
        delivery = Delivery::kUnknown;
        co_return std::unexpected(call.fault());
      case Call::Outcome::kCancelled:
        if (call.was_sent()) delivery = Delivery::kUnknown;
        co_return MakeError(ErrorCode::kCancelled, "the store's client was closed");
      case Call::Outcome::kDeadline:
        if (call.was_sent()) {
          delivery = Delivery::kUnknown;
          co_return MakeError(ErrorCode::kDeadlineExceeded, "the store did not answer in time");
        }
        co_return MakeError(
            ErrorCode::kDeadlineExceeded,
            shared.last_fault.empty()
                ? std::string("no connection to the store in time")
                : "no connection to the store in time; the last fault: " + shared.last_fault);
    }
    resp::Value& reply = call.reply();
    if (!reply.IsError()) co_return std::move(reply);
    const ErrorMeaning meaning = MeaningOf(reply.text);
    journey.wait_ns = 0;
    const bool goes_on = core->Follow(journey, *node, meaning, reply.text);
    const int64_t again_ns = shared.loop.now_ns() + journey.wait_ns;
    if (!goes_on || again_ns >= options.deadline_ns) {
      if (!meaning.refused) delivery = Delivery::kUnknown;
      Error error = ErrorOf(meaning, reply.text, node->address());
      if (meaning.kind == ErrorKind::kMoved && !core->topology_->IsCluster()) {
        error.message += "; the server is part of a Cluster, which needs redis+cluster://";
      }
      shared.Notice(error.message);
      co_return std::unexpected(std::move(error));
    }
    if (journey.wait_ns > 0) co_await shared.loop.SleepUntil(again_ns);
  }
}

Client::Stats Core::stats() const {
  Client::Stats stats;
  topology_->AddTo(stats);
  stats.calls_waiting += parked_.size();
  stats.connects = shared_->connects;
  stats.connects_failed = shared_->connects_failed;
  stats.redirects = redirects_;
  stats.script_loads = script_loads_;
  stats.topology_changes = shared_->topology_changes;
  stats.late_replies += shared_->late_replies;
  return stats;
}

}  // namespace weir::redis
