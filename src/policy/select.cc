// The hot part of a policy: does a limit apply to a call, and with which of its variants.
#include <algorithm>

#include "policy/override_index.h"
#include "policy/policy.h"

namespace weir::policy {
namespace {

// The first override that holds, in the order written, or the default.
int FindVariant(const Limit& limit, const Attributes& call, bool empty_counts) {
  const auto holds = [&](int index) {
    const Matcher& when = limit.variants[static_cast<size_t>(index)].when;
    if (!empty_counts && (when.named_mask() & ~call.present_mask()) != 0) return false;
    return when.Matches(call);
  };
  int first = static_cast<int>(limit.variants.size());
  for (const ExactOverrides& exact : limit.exact_overrides) {
    const auto found = exact.variants.find(call.Get(exact.attribute));
    if (found == exact.variants.end()) continue;
    for (int index : found->second) {
      if (index >= first) break;
      if (holds(index)) first = index;
    }
  }
  for (int index : limit.scanned_overrides) {
    if (index >= first) break;
    if (holds(index)) first = index;
  }
  return first < static_cast<int>(limit.variants.size()) ? first : 0;
}

// FNV-1a over length-prefixed values: it need not resist anyone, only be the same everywhere.
class StableHash {
 public:
  void Add(std::string_view value) {
    uint64_t length = value.size();
    for (int i = 0; i < 8; ++i, length >>= 8) AddByte(static_cast<uint8_t>(length));
    for (char c : value) AddByte(static_cast<uint8_t>(c));
  }

  // The finalizer of SplitMix64, since FNV's low bits alone are weak.
  uint64_t Finish() const {
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

 private:
  void AddByte(uint8_t byte) { state_ = (state_ ^ byte) * 0x100000001b3; }
  uint64_t state_ = 0xcbf29ce484222325;
};

// `add_key` adds the values that make the key.
template <typename AddKey>
bool IsEnforcedFor(const Limit& limit, AddKey&& add_key) {
  if (limit.enforce == Enforce::kAll) return true;
  if (limit.enforce == Enforce::kShadow) return false;
  StableHash hash;
  hash.Add(limit.name);
  add_key(hash);
  return static_cast<int>(hash.Finish() % 100) < limit.enforce_percent;
}

// The one attribute of `when` that a hash can decide: all its patterns are exact. Client goes
// first, as the one that overrides name most.
const Condition* ExactCondition(const Matcher& when) {
  const Condition* best = nullptr;
  for (const Condition& condition : when.conditions()) {
    // Hosts compare without regard to case and addresses by bits, so their text cannot be hashed.
    const bool exact = condition.attribute != kHostAttribute &&
                       std::ranges::all_of(condition.patterns, [](const Pattern& pattern) {
                         return pattern.kind == Pattern::Kind::kExact;
                       });
    if (exact && (best == nullptr || condition.attribute < best->attribute)) best = &condition;
  }
  return best;
}

}  // namespace

void IndexOverrides(Limit& limit) {
  for (int index = 1; index < static_cast<int>(limit.variants.size()); ++index) {
    const Condition* exact = ExactCondition(limit.variants[static_cast<size_t>(index)].when);
    if (exact == nullptr) {
      limit.scanned_overrides.push_back(index);
      continue;
    }
    auto table =
        std::ranges::find(limit.exact_overrides, exact->attribute, &ExactOverrides::attribute);
    if (table == limit.exact_overrides.end()) {
      limit.exact_overrides.push_back({.attribute = exact->attribute});
      table = limit.exact_overrides.end() - 1;
    }
    for (const Pattern& pattern : exact->patterns) {
      std::vector<int>& indexes = table->variants[pattern.text];
      if (indexes.empty() || indexes.back() != index) indexes.push_back(index);
    }
  }
}

int SelectVariant(const Limit& limit, const Attributes& call, Missing door) {
  if (limit.descriptor) return kDoesNotApply;
  const Missing missing = limit.missing == Missing::kDoor ? door : limit.missing;
  const uint32_t absent = limit.needed_mask & ~call.present_mask();
  if (absent != 0) {
    if (missing == Missing::kSkip) return kDoesNotApply;
    if (missing == Missing::kDeny) {
      return limit.match.MatchesPresent(call) ? kDeniedMissing : kDoesNotApply;
    }
  }
  if (!limit.match.Matches(call)) return kDoesNotApply;
  if (limit.variants.size() == 1) return 0;
  return FindVariant(limit, call, /*empty_counts=*/missing == Missing::kEmpty);
}

bool IsEnforced(const Limit& limit, const Attributes& call) {
  return IsEnforcedFor(limit, [&](StableHash& hash) {
    for (int attribute : limit.per) hash.Add(call.Get(attribute));
  });
}

bool IsEnforced(const Limit& limit, std::span<const DescriptorEntry> entries) {
  return IsEnforcedFor(limit, [&](StableHash& hash) {
    for (const DescriptorEntry& entry : entries) hash.Add(entry.value);
  });
}

}  // namespace weir::policy
