// Which limits apply to a call, and why the others do not.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/suggest.h"
#include "policy/describe.h"

namespace weir::policy {
namespace {

std::string KeyWords(const Policy& policy, const Limit& limit, const Attributes& call) {
  if (limit.per.empty()) return "one key for all";
  std::string out = "key";
  for (int attribute : limit.per) {
    out += fmt::format(" {}={}", policy.attributes().NameOf(attribute), call.Get(attribute));
  }
  return out;
}

// Why `limit` does not apply, in words.
std::string Absence(const Policy& policy, const Limit& limit, const Attributes& call,
                    Missing door) {
  const Missing missing = limit.missing == Missing::kDoor ? door : limit.missing;
  if (missing == Missing::kSkip) {
    const uint32_t absent = limit.needed_mask & ~call.present_mask();
    for (int i = 0; i < policy.attributes().size(); ++i) {
      if ((absent >> i & 1) != 0) {
        return fmt::format("{} is missing", policy.attributes().NameOf(i));
      }
    }
  }
  return WhyNot(limit.match, call, policy.attributes()).value_or("its match does not hold");
}

}  // namespace

std::string Explain(const Policy& policy, const Attributes& call, Missing door) {
  std::string applies;
  std::string others;
  for (const Limit& limit : policy.limits()) {
    if (limit.descriptor) {
      others += fmt::format("  {}: it is for descriptors (of {})\n", limit.name,
                            limit.descriptor->domain);
      continue;
    }
    const int selected = SelectVariant(limit, call, door);
    if (selected == kDoesNotApply) {
      others += fmt::format("  {}: {}\n", limit.name, Absence(policy, limit, call, door));
      continue;
    }
    if (selected == kDeniedMissing) {
      applies +=
          fmt::format("  {}: denies, since an attribute is missing (missing: deny)\n", limit.name);
      continue;
    }
    const Variant& variant = limit.variants[static_cast<size_t>(selected)];
    applies += fmt::format("  {}: {} ({}), {}", limit.name, BoundInWords(limit, variant),
                           RateInWords(variant), KeyWords(policy, limit, call));
    if (selected > 0) {
      applies +=
          fmt::format(", by the override when {}", ToString(variant.when, policy.attributes()));
    }
    if (!IsEnforced(limit, call)) applies += ", in shadow: counted, never denying";
    applies += ConsistencyInWords(policy, limit);
    applies += "\n";
  }
  return "applies:\n" + (applies.empty() ? "  none\n" : applies) + "does not apply:\n" +
         (others.empty() ? "  none\n" : others);
}

Result<std::string> ExplainPairs(const Policy& policy, const std::vector<std::string>& pairs,
                                 Missing door) {
  Attributes call;
  for (const std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return InvalidArgument("`" + pair + "`: write attributes as NAME=VALUE");
    }
    const auto index = policy.attributes().Find(std::string_view(pair).substr(0, equals));
    if (!index) return std::unexpected(index.error());
    if (*index != kUnusedAttribute) call.Set(*index, std::string_view(pair).substr(equals + 1));
  }
  return Explain(policy, call, door);
}

namespace {

// Why a limit does not apply to the descriptor; `winner` is the pattern whose limits do.
std::string Absence(const DescriptorPattern& pattern, std::span<const DescriptorEntry> entries,
                    const DescriptorPattern* winner) {
  if (pattern.entries.size() != entries.size()) {
    return fmt::format("it binds to {} {}, and there are {}", pattern.entries.size(),
                       pattern.entries.size() == 1 ? "entry" : "entries", entries.size());
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const EntryPattern& entry = pattern.entries[i];
    if (entry.Matches(entries[i])) continue;
    if (entry.key != entries[i].key)
      return fmt::format("entry {} is {}, not {}", i + 1, entries[i].key, entry.key);
    return fmt::format("{} is {}, not {}", entry.key, entries[i].value, entry.value);
  }
  return fmt::format("{} is more specific", ToString(winner->entries));
}

std::string NearestDomain(const Policy& policy, std::string_view domain) {
  std::vector<std::string_view> domains;
  for (const Limit& limit : policy.limits()) {
    if (limit.descriptor) domains.push_back(limit.descriptor->domain);
  }
  return base::DidYouMean(domain, domains);
}

std::string Explain(const Policy& policy, std::string_view domain,
                    std::span<const DescriptorEntry> entries) {
  const std::span<const int> found = policy.descriptors().Find(domain, entries);
  const auto limit_at = [&](int index) -> const Limit& {
    return policy.limits()[static_cast<size_t>(index)];
  };
  std::string applies;
  for (const int index : found) {
    const Limit& limit = limit_at(index);
    const Variant& variant = limit.variants[0];
    applies += fmt::format("  {}: {} ({}), key {}", limit.name, BoundInWords(limit, variant),
                           RateInWords(variant), ToString(entries));
    if (!IsEnforced(limit, entries)) applies += ", in shadow: counted, never denying";
    applies += ConsistencyInWords(policy, limit);
    applies += "\n";
  }
  std::string others;
  for (const Limit& limit : policy.limits()) {
    const bool of_domain = limit.descriptor && limit.descriptor->domain == domain;
    if (!of_domain || std::ranges::find(found, limit.index) != found.end()) continue;
    const DescriptorPattern* const winner =
        found.empty() ? nullptr : &*limit_at(found[0]).descriptor;
    others += fmt::format("  {}: {}\n", limit.name, Absence(*limit.descriptor, entries, winner));
  }
  if (others.empty()) {
    others = found.empty() ? fmt::format("  no limit has the domain {}{}\n", domain,
                                         NearestDomain(policy, domain))
                           : fmt::format("  no other limit of domain {}\n", domain);
  }
  return "applies:\n" + (applies.empty() ? "  none\n" : applies) + "does not apply:\n" + others;
}

}  // namespace

Result<std::string> ExplainDescriptor(const Policy& policy, std::string_view domain,
                                      const std::vector<std::string>& pairs) {
  std::vector<DescriptorEntry> entries;
  for (const std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      return InvalidArgument("`" + pair + "`: write entries as KEY=VALUE");
    entries.push_back(
        {std::string_view(pair).substr(0, equals), std::string_view(pair).substr(equals + 1)});
  }
  if (entries.empty()) return InvalidArgument("a descriptor has at least one entry, KEY=VALUE");
  return Explain(policy, domain, entries);
}

}  // namespace weir::policy
