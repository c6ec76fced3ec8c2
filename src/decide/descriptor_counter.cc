#include "decide/descriptor_counter.h"

#include <array>
#include <string>

namespace weir::decide {
namespace {

// The parts of a name, gathered without allocating.
class Parts {
 public:
  Parts& Add(std::string_view part) {
    parts_[count_++] = part;
    return *this;
  }
  Parts& AddPairs(std::span<const policy::DescriptorEntry> entries) {
    for (const policy::DescriptorEntry& entry : entries) Add(entry.key).Add(entry.value);
    return *this;
  }
  base::Key128 Name(const base::HmacKeys& keys) const { return keys.Of({parts_.data(), count_}); }

 private:
  std::array<std::string_view, 3 + 2 * policy::kMaxDescriptorEntries> parts_;
  size_t count_ = 0;
};

}  // namespace

// A limit's identity has its domain and the keys in it.
base::Key128 DescriptorCounter::SharedKey(const base::HmacKeys& keys) const {
  Parts parts;
  if (limit == nullptr)
    return parts.Add("descriptor rate").Add(domain).AddPairs(entries).Name(keys);
  parts.Add(limit->limit->variants[0].identity);
  for (const policy::DescriptorEntry& entry : entries) parts.Add(entry.value);
  const std::string period = std::to_string(period_ns);
  if (period_ns > 0) parts.Add(period);
  return parts.Name(keys);
}

uint64_t DescriptorCounter::Tag(const base::HmacKeys& keys) const {
  return Parts().Add("descriptor").Add(domain).AddPairs(entries).Name(keys).hi;
}

}  // namespace weir::decide
