#include "policy/descriptor_index.h"

namespace weir::policy {

size_t DescriptorIndex::NodeAt(size_t& index) {
  if (index == kNone) {
    index = nodes_.size();
    nodes_.emplace_back();
  }
  return index;
}

size_t DescriptorIndex::ChildOf(size_t node, const EntryPattern& entry) {
  size_t& at = nodes_[node].keys.At(entry.key);
  if (at == kNone) {
    at = branches_.size();
    branches_.emplace_back();
  }
  Branch& branch = branches_[at];
  if (entry.kind == EntryPattern::Kind::kExact) return NodeAt(branch.exact.At(entry.value));
  if (entry.kind == EntryPattern::Kind::kAnyValue) return NodeAt(branch.any);
  for (const Wildcard& wildcard : branch.wildcards) {
    if (wildcard.value == entry.value) return wildcard.child;
  }
  return NodeAt(branch.wildcards.emplace_back(entry.value, kNone).child);
}

void DescriptorIndex::Add(const DescriptorPattern& pattern, int limit) {
  size_t node = NodeAt(domains_.At(pattern.domain));
  for (const EntryPattern& entry : pattern.entries) node = ChildOf(node, entry);
  nodes_[node].limits.push_back(limit);
}

const DescriptorIndex::Node* DescriptorIndex::Search(
    size_t node, std::span<const DescriptorEntry> entries) const {
  if (node == kNone) return nullptr;
  const Node& here = nodes_[node];
  if (entries.empty()) return here.limits.empty() ? nullptr : &here;
  const DescriptorEntry& entry = entries.front();
  const size_t at = here.keys.Find(entry.key);
  if (at == kNone) return nullptr;
  const Branch& branch = branches_[at];
  const std::span<const DescriptorEntry> rest = entries.subspan(1);
  if (const Node* const found = Search(branch.exact.Find(entry.value), rest)) return found;
  for (const Wildcard& wildcard : branch.wildcards) {
    if (!MatchesWildcard(wildcard.value, entry.value)) continue;
    if (const Node* const found = Search(wildcard.child, rest)) return found;
  }
  return Search(branch.any, rest);
}

std::span<const int> DescriptorIndex::Find(std::string_view domain,
                                           std::span<const DescriptorEntry> entries) const {
  if (entries.empty()) return {};
  const Node* const found = Search(domains_.Find(domain), entries);
  return found == nullptr ? std::span<const int>() : std::span<const int>(found->limits);
}

}  // namespace weir::policy
