#include "shared_store/node_count.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "store/lease/lease_script.h"

namespace weir::shared_store {
namespace {

constexpr int64_t kBeatsBelieved = 4;
// The first of a beat's period, doubled with each: nodes that start together soon know of each
// other.
constexpr int64_t kFirstPart = 16;

}  // namespace

NodeCounter::NodeCounter(Options options)
    : options_(std::move(options)),
      key_(options_.prefix + "nodes"),
      id_(std::to_string(options_.node->id)),
      believed_us_(std::to_string(kBeatsBelieved * options_.beat_ns / 1000)),
      leaving_(*options_.loop) {}

void NodeCounter::Start() { options_.loop->Spawn(Run()); }

void NodeCounter::Leave() { leaving_.Set(); }

Task<void> NodeCounter::Run() {
  int64_t pause_ns = options_.beat_ns / kFirstPart;
  while (!leaving_.is_set()) {
    const Result<resp::Value> nodes = co_await Say("0");
    if (nodes && nodes->IsInteger() && nodes->integer > 0) {
      seen_.Answered(nodes->integer);
      options_.node->nodes.store(seen_.count(), std::memory_order_relaxed);
    }
    co_await leaving_.WaitUntil(options_.loop->now_ns() + pause_ns);
    pause_ns = std::min(2 * pause_ns, options_.beat_ns);
  }
  [[maybe_unused]] const Result<resp::Value> left = co_await Say("1");
}

Task<Result<resp::Value>> NodeCounter::Say(std::string_view leaves) {
  const std::array<std::string_view, 1> keys{key_};
  const std::array<std::string_view, 3> arguments{id_, believed_us_, leaves};
  const store::lease::Script& script = store::lease::kNodeHeartbeatScript;
  redis::CallOptions call(options_.loop->now_ns() + options_.beat_ns);
  co_return co_await options_.client->RunScript(script.sha1, script.text, keys, arguments,
                                                std::move(call));
}

}  // namespace weir::shared_store
