// Counters, gauges and histograms, written by many event loops and read by one scrape.
//
// Each series has one 64-bit slot per shard, and each shard has one writer: a loop adds with a
// plain load and store, no lock prefix, no shared cache line. A scrape sums the shards; it may see
// a value that is a moment old, never a torn one. All series are registered before traffic uses
// them (at start and on reload), within a bound per family, so the number of series does not depend
// on traffic.
//
// Thread safety: register and scrape from any thread (a mutex inside). Write through a handle only
// from the thread that owns the shard; AddFromAnywhere is for all others. Handles are values and
// stay valid as long as the Registry.
//
//   Registry registry({.shards = 2});
//   Family& calls = registry.AddCounters("weir_calls_total", "Calls by door.", {"door"}, 8);
//   Counter gateway = registry.CounterOf(calls, {"gateway"});
//   gateway.Add(shard);
//   std::string text = registry.Expose();
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::metrics {

// 64-bit slots of one page per shard: the slot of shard s lies s pages behind that of shard 0.
inline constexpr size_t kSlotsPerPage = 512;
using Slot = std::atomic<uint64_t>;

// A monotonic count.
class Counter {
 public:
  Counter() = default;

  // REQUIRES: the calling thread owns `shard`. Relaxed on both sides: a count orders nothing.
  void Add(size_t shard, uint64_t n = 1) const {
    Slot& slot = slots_[shard * kSlotsPerPage];
    slot.store(slot.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  // From any thread; one locked add.
  void AddFromAnywhere(uint64_t n = 1) const {
    slots_[shared_shard_ * kSlotsPerPage].fetch_add(n, std::memory_order_relaxed);
  }

  uint64_t Value() const;

  // The same series.
  friend bool operator==(const Counter& a, const Counter& b) { return a.slots_ == b.slots_; }

 private:
  friend class Registry;
  Counter(Slot* slots, uint32_t shared_shard) : slots_(slots), shared_shard_(shared_shard) {}

  Slot* slots_ = nullptr;
  uint32_t shared_shard_ = 0;  // The one behind the loops' shards.
};

// A value that goes both ways. Loops add their part to their shard; Set is for gauges with one
// writer.
class Gauge {
 public:
  Gauge() = default;

  // REQUIRES: the calling thread owns `shard`.
  void Add(size_t shard, int64_t n) const {
    Slot& slot = slots_[shard * kSlotsPerPage];
    slot.store(slot.load(std::memory_order_relaxed) + static_cast<uint64_t>(n),
               std::memory_order_relaxed);
  }

  // Any thread. Not to be mixed with Add on one gauge.
  void Set(int64_t value) const {
    slots_[shared_shard_ * kSlotsPerPage].store(static_cast<uint64_t>(value),
                                                std::memory_order_relaxed);
  }

  int64_t Value() const;

 private:
  friend class Registry;
  Gauge(Slot* slots, uint32_t shared_shard) : slots_(slots), shared_shard_(shared_shard) {}

  Slot* slots_ = nullptr;
  uint32_t shared_shard_ = 0;
};

// Durations in nanoseconds, shown in seconds.
class Histogram {
 public:
  Histogram() = default;

  // REQUIRES: the calling thread owns `shard`. Negative durations count as 0.
  void Record(size_t shard, int64_t duration_ns) const {
    const uint64_t ns = duration_ns < 0 ? 0 : static_cast<uint64_t>(duration_ns);
    size_t bucket = 0;
    while (bucket < bounds_ns_.size() && ns > bounds_ns_[bucket]) ++bucket;
    Slot* slots = slots_ + shard * kSlotsPerPage;
    Increase(slots[bucket], 1);
    Increase(slots[bounds_ns_.size() + 1], ns);
  }

  uint64_t Count() const;
  uint64_t SumNs() const;

 private:
  friend class Registry;
  Histogram(Slot* slots, uint32_t shared_shard, std::span<const uint64_t> bounds_ns)
      : slots_(slots), bounds_ns_(bounds_ns), shared_shard_(shared_shard) {}
  static void Increase(Slot& slot, uint64_t n) {
    slot.store(slot.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  Slot* slots_ = nullptr;  // One per bound, one beyond the last bound, one for the sum.
  std::span<const uint64_t> bounds_ns_;
  uint32_t shared_shard_ = 0;
};

enum class MetricType : uint8_t { kCounter, kGauge, kHistogram };

// One metric name with its labels' names; its series are registered one by one.
class Family;

// Adds one sample of a family that is computed at each scrape. What exceeds the family's bound or
// repeats a label set is dropped.
using SampleSink =
    std::function<void(std::span<const std::string_view> label_values, double value)>;

struct RegistryOptions {
  size_t shards = 1;  // One per event loop.
};

class Registry {
 public:
  explicit Registry(RegistryOptions options);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  size_t shards() const { return shards_; }

  // Declares a family. `max_series` bounds it for good; one more, "other", takes what comes beyond.
  // Aborts on a name that is taken or is no metric name.
  Family& AddCounters(std::string_view name, std::string_view help, std::vector<std::string> labels,
                      size_t max_series);
  Family& AddGauges(std::string_view name, std::string_view help, std::vector<std::string> labels,
                    size_t max_series);
  // `bounds_ns` ascending, at least one, at most 60.
  Family& AddHistograms(std::string_view name, std::string_view help,
                        std::vector<std::string> labels, std::vector<uint64_t> bounds_ns,
                        size_t max_series);
  // Samples come from `collect`, called at each scrape on the scraping thread, with the registry's
  // mutex held.
  Family& AddCollected(MetricType type, std::string_view name, std::string_view help,
                       std::vector<std::string> labels, size_t max_series,
                       std::function<void(const SampleSink&)> collect);

  // The series with these label values: the same slots each time it is asked for. Past the family's
  // bound every new series is one and the same, with all labels "other". Allocates; takes the
  // mutex.
  Counter CounterOf(Family& family, std::span<const std::string_view> values);
  Counter CounterOf(Family& family, std::initializer_list<std::string_view> values) {
    return CounterOf(family, std::span<const std::string_view>(values.begin(), values.size()));
  }
  Gauge GaugeOf(Family& family, std::initializer_list<std::string_view> values);
  Histogram HistogramOf(Family& family, std::initializer_list<std::string_view> values);

  // Series that are on no page, for events nobody asked to see.
  Counter UnlistedCounter();
  Gauge UnlistedGauge();

  // Hides the series of `family` whose first label is not among `kept`; one that comes back shows
  // its old count.
  void ShowOnly(Family& family, std::span<const std::string_view> kept);

  // The Prometheus text format, version 0.0.4, families by name. Content-Type: kContentType.
  std::string Expose() const;
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  // Samples that Expose would write now.
  size_t SampleCount() const;

 private:
  struct Series;
  Family& Add(MetricType type, std::string_view name, std::string_view help,
              std::vector<std::string> labels, size_t max_series);
  Series& SeriesOf(Family& family, std::span<const std::string_view> values);
  Slot* TakeSlots(size_t count);
  void Write(const Family& family, std::string& out, size_t& samples) const;

  const size_t shards_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Family>> families_;  // Sorted by name.
  struct alignas(64) Page {
    std::array<Slot, kSlotsPerPage> slots{};
  };
  std::vector<std::unique_ptr<Page[]>>
      pages_;  // One page per shard each, and one for AddFromAnywhere and Set.
  size_t used_in_page_ = kSlotsPerPage;
  friend class Family;
};

}  // namespace weir::metrics
