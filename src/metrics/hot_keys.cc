#include "metrics/hot_keys.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace weir::metrics {
namespace {

struct LimitClient {
  uint32_t limit = 0;
  ClientName client;
  int64_t remaining = 0;
  int64_t quota = 0;
};

struct HashOfKey {
  size_t operator()(const base::Key128& key) const { return key.lo; }
};

void SetName(ClientName& name, std::string_view client, bool hashed) {
  name.size = static_cast<uint8_t>(std::min(client.size(), ClientName::kMaxBytes));
  std::copy_n(client.data(), name.size, name.text.data());
  name.hashed = hashed;
}

// The key of a (limit, client) pair: the client's keyed hash, moved by a multiple of an odd number
// per limit.
base::Key128 PairKey(base::Key128 client, uint32_t limit) {
  return {client.hi ^ (uint64_t{limit} + 1) * 0x9e3779b97f4a7c15u,
          client.lo + (uint64_t{limit} + 1) * 0xd1b54a32d192ed03u};
}

}  // namespace

// Aligned, so that two loops' mutexes share no cache line.
struct alignas(64) HotKeys::Shard {
  explicit Shard(const HotKeysOptions& options)
      : allowed(options.clients), denied(options.clients), pairs(options.limit_clients) {}

  mutable std::mutex mutex;
  SpaceSaving<ClientName> allowed;
  SpaceSaving<ClientName> denied;
  SpaceSaving<LimitClient> pairs;
};

HotKeys::HotKeys(HotKeysOptions options) {
  for (size_t i = 0; i < options.shards; ++i) shards_.push_back(std::make_unique<Shard>(options));
}

HotKeys::~HotKeys() = default;

void HotKeys::OnClient(size_t shard, base::Key128 key, std::string_view client, bool hashed,
                       bool allowed) {
  Shard& mine = *shards_[shard];
  const std::lock_guard lock(mine.mutex);
  (allowed ? mine.allowed : mine.denied).Touch(key, 1, [&](ClientName& name) {
    SetName(name, client, hashed);
  });
}

void HotKeys::OnLimit(size_t shard, uint32_t limit, base::Key128 key, std::string_view client,
                      bool hashed, int64_t remaining, int64_t quota) {
  Shard& mine = *shards_[shard];
  const std::lock_guard lock(mine.mutex);
  LimitClient& pair = mine.pairs.Touch(PairKey(key, limit), 1, [&](LimitClient& fresh) {
    fresh.limit = limit;
    SetName(fresh.client, client, hashed);
  });
  pair.remaining = remaining;
  pair.quota = quota;
}

std::vector<TopClient> HotKeys::Top(By by, size_t n) const {
  struct Merged {
    TopClient top;
    uint64_t absent_max =
        0;  // Of the shards that track this client: what the others' sum has to leave out.
  };
  std::unordered_map<base::Key128, Merged, HashOfKey> clients;
  uint64_t untracked_sum = 0;
  for (const auto& shard : shards_) {
    const std::lock_guard lock(shard->mutex);
    const SpaceSaving<ClientName>& sketch = by == By::kAllowed ? shard->allowed : shard->denied;
    untracked_sum += sketch.untracked_max();
    for (const auto& entry : sketch.entries()) {
      Merged& merged = clients[entry.key];
      if (merged.top.client.empty()) {
        merged.top.client = entry.payload.view();
        merged.top.hashed = entry.payload.hashed;
      }
      merged.top.count += entry.count;
      merged.top.error += entry.error;
      merged.absent_max += sketch.untracked_max();
    }
  }
  std::vector<TopClient> top;
  top.reserve(clients.size());
  for (auto& [key, merged] : clients) {
    // A shard that does not track the client may have seen it as often as its least tracked one.
    const uint64_t elsewhere = untracked_sum - merged.absent_max;
    merged.top.count += elsewhere;
    merged.top.error += elsewhere;
    top.push_back(std::move(merged.top));
  }
  std::ranges::sort(top, [](const TopClient& a, const TopClient& b) {
    return a.count != b.count ? a.count > b.count : a.client < b.client;
  });
  if (top.size() > n) top.resize(n);
  return top;
}

std::vector<LimitRatio> HotKeys::Ratios(size_t n) const {
  struct Merged {
    LimitRatio ratio;
    uint64_t most = 0;  // Calls on the shard whose latest answer is shown.
  };
  std::unordered_map<base::Key128, Merged, HashOfKey> pairs;
  for (const auto& shard : shards_) {
    const std::lock_guard lock(shard->mutex);
    for (const auto& entry : shard->pairs.entries()) {
      Merged& merged = pairs[entry.key];
      merged.ratio.calls += entry.count;
      if (entry.count <= merged.most) continue;
      merged.most = entry.count;
      merged.ratio.limit = entry.payload.limit;
      merged.ratio.client = entry.payload.client.view();
      merged.ratio.hashed = entry.payload.client.hashed;
      const auto quota = static_cast<double>(entry.payload.quota);
      const auto remaining = static_cast<double>(std::max<int64_t>(entry.payload.remaining, 0));
      merged.ratio.remaining_ratio = quota > 0 ? std::min(remaining / quota, 1.0) : 0;
    }
  }
  std::vector<LimitRatio> ratios;
  ratios.reserve(pairs.size());
  for (auto& [key, merged] : pairs) ratios.push_back(std::move(merged.ratio));
  std::ranges::sort(ratios, [](const LimitRatio& a, const LimitRatio& b) {
    return a.calls != b.calls ? a.calls > b.calls
                              : std::tie(a.client, a.limit) < std::tie(b.client, b.limit);
  });
  if (ratios.size() > n) ratios.resize(n);
  return ratios;
}

}  // namespace weir::metrics
