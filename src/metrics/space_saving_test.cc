#include "metrics/space_saving.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace weir::metrics {
namespace {

using Sketch = SpaceSaving<std::string>;

base::Key128 KeyOf(uint64_t n) { return {n * 0x9e3779b97f4a7c15u, n}; }

void Touch(Sketch& sketch, uint64_t n, uint64_t weight = 1) {
  sketch.Touch(KeyOf(n), weight, [&](std::string& name) { name = std::to_string(n); });
}

const Sketch::Entry* Find(const Sketch& sketch, uint64_t n) {
  for (const auto& entry : sketch.entries()) {
    if (entry.key == KeyOf(n)) return &entry;
  }
  return nullptr;
}

TEST(SpaceSaving, IsExactWhileThereIsRoom) {
  Sketch sketch(3);
  for (const uint64_t n : {1, 2, 1, 3, 1, 2}) Touch(sketch, n);
  ASSERT_EQ(sketch.entries().size(), 3u);
  EXPECT_EQ(Find(sketch, 1)->count, 3u);
  EXPECT_EQ(Find(sketch, 2)->count, 2u);
  EXPECT_EQ(Find(sketch, 3)->count, 1u);
  EXPECT_EQ(Find(sketch, 3)->error, 0u);
  EXPECT_EQ(Find(sketch, 2)->payload, "2");
  EXPECT_EQ(sketch.total(), 6u);
}

TEST(SpaceSaving, ANewcomerTakesTheLeastCountAsItsError) {
  Sketch sketch(2);
  Touch(sketch, 1, 5);
  Touch(sketch, 2, 3);
  EXPECT_EQ(sketch.untracked_max(), 3u);
  Touch(sketch, 9, 1);
  EXPECT_EQ(Find(sketch, 2), nullptr);
  ASSERT_NE(Find(sketch, 9), nullptr);
  EXPECT_EQ(Find(sketch, 9)->count, 4u);
  EXPECT_EQ(Find(sketch, 9)->error, 3u);
  EXPECT_EQ(Find(sketch, 9)->payload, "9");
  EXPECT_EQ(Find(sketch, 1)->count, 5u);
}

TEST(SpaceSaving, ANameIsAskedForOncePerNewcomer) {
  Sketch sketch(2);
  int asked = 0;
  for (int i = 0; i < 5; ++i) sketch.Touch(KeyOf(1), 1, [&](std::string&) { ++asked; });
  EXPECT_EQ(asked, 1);
}

// The sketch against a plain count: every bound that the header states, for random streams,
// capacities and weights, with keys that collide in the index.
TEST(SpaceSaving, HoldsItsErrorBound) {
  EXPECT_TRUE(rc::check("space saving against a map", [] {
    const auto capacity = *rc::gen::inRange<size_t>(1, 20);
    const auto stream = *rc::gen::container<std::vector<std::pair<uint64_t, uint64_t>>>(
        rc::gen::pair(rc::gen::inRange<uint64_t>(0, 60), rc::gen::inRange<uint64_t>(1, 5)));
    Sketch sketch(capacity);
    std::map<uint64_t, uint64_t> truth;
    uint64_t total = 0;
    for (const auto& [n, weight] : stream) {
      Touch(sketch, n % 2 == 0 ? n : n * 64, weight);
      truth[n % 2 == 0 ? n : n * 64] += weight;
      total += weight;
    }
    RC_ASSERT(sketch.total() == total);
    RC_ASSERT(sketch.entries().size() == std::min(capacity, truth.size()));
    for (const auto& [n, weight] : truth) {
      const Sketch::Entry* entry = Find(sketch, n);
      if (entry == nullptr) {
        RC_ASSERT(weight <= sketch.untracked_max());
        RC_ASSERT(weight * capacity <= total);
        continue;
      }
      RC_ASSERT(entry->payload == std::to_string(n));
      RC_ASSERT(entry->count >= weight);
      RC_ASSERT(entry->count - entry->error <= weight);
      RC_ASSERT(entry->error * capacity <= total);
    }
  }));
}

}  // namespace
}  // namespace weir::metrics
