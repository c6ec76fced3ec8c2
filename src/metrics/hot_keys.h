// Which clients call most and are denied most, and how near the hottest are to their limits. Feeds
// GET /admin/top and weir_limit_remaining_ratio.
//
// One sketch per shard and question (space_saving.h), under a mutex per shard that only a scrape
// ever contends. Memory is fixed: nothing grows with the number of clients. Thread safety: OnClient
// and OnLimit from the thread that owns the shard; Top and Ratios from any thread.
//
//   HotKeys hot({.shards = 2});
//   hot.OnClient(shard, client_fingerprint, client_id, /*allowed=*/false);
//   for (const TopClient& top : hot.Top(HotKeys::By::kDenied, 20)) Show(top);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/keyed_hash.h"
#include "metrics/space_saving.h"

namespace weir::metrics {

// A client's name, inline and bounded: longer ones are cut, at most kMaxBytes are kept.
struct ClientName {
  static constexpr size_t kMaxBytes = 62;
  std::array<char, kMaxBytes> text{};
  uint8_t size = 0;
  bool hashed = false;  // The name is a keyed hash already (an id of base/hmac_id.h) and may be
                        // shown in /metrics.

  std::string_view view() const { return {text.data(), size}; }
};

struct TopClient {
  std::string client;
  bool hashed = false;
  uint64_t count = 0;  // The true count lies in [count - error, count].
  uint64_t error = 0;
};

struct LimitRatio {
  uint32_t limit = 0;
  std::string client;
  bool hashed = false;
  uint64_t calls = 0;
  double remaining_ratio =
      0;  // remaining / quota at the latest call on the shard that saw most of them, 0 to 1.
};

struct HotKeysOptions {
  size_t shards = 1;
  size_t clients =
      256;  // Tracked per shard and question; every client above 1/256 of a shard's calls is found.
  size_t limit_clients = 512;  // (limit, client) pairs tracked per shard.
};

class HotKeys {
 public:
  enum class By : uint8_t { kAllowed, kDenied };

  explicit HotKeys(HotKeysOptions options);
  ~HotKeys();

  // One decision for a client. `key` is a keyed hash of its identity; `client` is read only when
  // the client is new to the sketch. About 30 ns, no allocation.
  void OnClient(size_t shard, base::Key128 key, std::string_view client, bool hashed, bool allowed);

  // What a limit whose key contains the client said. `limit` is LimitSeries::id.
  void OnLimit(size_t shard, uint32_t limit, base::Key128 key, std::string_view client, bool hashed,
               int64_t remaining, int64_t quota);

  // At most `n`, most first. Allocates; holds each shard's mutex while copying it.
  std::vector<TopClient> Top(By by, size_t n) const;
  std::vector<LimitRatio> Ratios(size_t n) const;

 private:
  struct Shard;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace weir::metrics
