// DescriptorPattern: which descriptors a limit binds to. A descriptor is a list of (key, value)
// pairs under a domain, the way Envoy's rate limit filter describes a call.
//
//   DescriptorPattern pattern{"mongo_cps", {{.key = "database", .value = "users"}, {.key = "ip"}}};
//   pattern.Matches("mongo_cps", entries);     // As many entries, each matching in its place.
//
// Thread safety: plain values. Matching neither allocates nor blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

inline constexpr size_t kMaxDescriptorEntries = 32;

struct DescriptorEntry {
  std::string_view key;
  std::string_view value;
};

struct EntryPattern {
  enum class Kind : uint8_t { kExact, kWildcard, kAnyValue };

  std::string key;
  std::string value;  // Of kWildcard: each `*` stands for any text, also for none.
  Kind kind = Kind::kAnyValue;

  bool Matches(const DescriptorEntry& entry) const;
  friend bool operator==(const EntryPattern&, const EntryPattern&) = default;
};

struct DescriptorPattern {
  std::string domain;
  std::vector<EntryPattern> entries;  // 1 to kMaxDescriptorEntries.

  bool Matches(std::string_view of_domain, std::span<const DescriptorEntry> call) const;
  friend bool operator==(const DescriptorPattern&, const DescriptorPattern&) = default;
};

// Whether `text` is the pattern with each `*` replaced by some text.
bool MatchesWildcard(std::string_view pattern, std::string_view text);

// "database=users, remote_address"
std::string ToString(std::span<const EntryPattern> entries);
std::string ToString(std::span<const DescriptorEntry> entries);

}  // namespace weir::policy
