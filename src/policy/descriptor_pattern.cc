#include "policy/descriptor_pattern.h"

#include <algorithm>

namespace weir::policy {

bool MatchesWildcard(std::string_view pattern, std::string_view text) {
  const size_t first = pattern.find('*');
  if (first == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, first))) return false;
  text.remove_prefix(first);
  pattern.remove_prefix(first + 1);
  // What stands between two stars is best found as early as it can be: the rest then has most room.
  for (size_t star = pattern.find('*'); star != std::string_view::npos; star = pattern.find('*')) {
    const std::string_view part = pattern.substr(0, star);
    const size_t at = text.find(part);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + part.size());
    pattern.remove_prefix(star + 1);
  }
  return text.ends_with(pattern);
}

bool EntryPattern::Matches(const DescriptorEntry& entry) const {
  if (entry.key != key) return false;
  switch (kind) {
    case Kind::kExact:
      return entry.value == value;
    case Kind::kWildcard:
      return MatchesWildcard(value, entry.value);
    case Kind::kAnyValue:
      break;
  }
  return true;
}

bool DescriptorPattern::Matches(std::string_view of_domain,
                                std::span<const DescriptorEntry> call) const {
  return of_domain == domain &&
         std::ranges::equal(entries, call,
                            [](const EntryPattern& pattern, const DescriptorEntry& entry) {
                              return pattern.Matches(entry);
                            });
}

std::string ToString(std::span<const EntryPattern> entries) {
  std::string out;
  for (const EntryPattern& entry : entries) {
    if (!out.empty()) out += ", ";
    out += entry.key;
    if (entry.kind != EntryPattern::Kind::kAnyValue) out += "=" + entry.value;
  }
  return out;
}

std::string ToString(std::span<const DescriptorEntry> entries) {
  std::string out;
  for (const DescriptorEntry& entry : entries) {
    if (!out.empty()) out += ", ";
    out.append(entry.key).append("=").append(entry.value);
  }
  return out;
}

}  // namespace weir::policy
