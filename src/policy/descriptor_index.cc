#include "policy/descriptor_index.h"

#include <utility>

namespace weir::policy {
namespace {

// Marks of names, so that no two kinds of child share one.
constexpr uint64_t kAnyValue = 1;
constexpr uint64_t kDomain = 2;

}  // namespace

DescriptorIndex::DescriptorIndex() : hasher_(base::KeyHasher::Random()), slots_(16) {}

base::Key128 DescriptorIndex::DomainName(std::string_view domain) const {
  return hasher_.Begin(domain).Add(kDomain).Finish();
}

size_t DescriptorIndex::FindNode(base::Key128 name) const {
  const size_t mask = slots_.size() - 1;
  for (size_t i = name.lo & mask; slots_[i].node != kNone; i = (i + 1) & mask) {
    if (slots_[i].name == name) return slots_[i].node;
  }
  return kNone;
}

void DescriptorIndex::Put(base::Key128 name, size_t node) {
  if (++taken_ * 2 > slots_.size()) {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
    taken_ = 1;
    for (const Slot& slot : old) {
      if (slot.node != kNone) Put(slot.name, slot.node);
    }
  }
  const size_t mask = slots_.size() - 1;
  size_t i = name.lo & mask;
  while (slots_[i].node != kNone) i = (i + 1) & mask;
  slots_[i] = {name, node};
}

size_t DescriptorIndex::NewNode() {
  const uint64_t id = nodes_.size();
  nodes_.push_back({.front = hasher_.Begin().Add(id)});
  return id;
}

size_t DescriptorIndex::NodeOf(base::Key128 name) {
  size_t node = FindNode(name);
  if (node != kNone) return node;
  node = NewNode();
  Put(name, node);
  return node;
}

size_t DescriptorIndex::ChildOf(size_t node, const EntryPattern& entry) {
  base::KeyHasher::State name = nodes_[node].front;
  name.Add(entry.key);
  switch (entry.kind) {
    case EntryPattern::Kind::kExact:
      nodes_[node].has_exact = true;
      return NodeOf(name.Add(entry.value).Finish());
    case EntryPattern::Kind::kAnyValue:
      nodes_[node].has_any = true;
      return NodeOf(name.Add(kAnyValue).Finish());
    case EntryPattern::Kind::kWildcard:
      break;
  }
  for (const Wildcard& wildcard : nodes_[node].wildcards) {
    if (wildcard.key == entry.key && wildcard.value == entry.value) return wildcard.child;
  }
  const size_t child = NewNode();
  nodes_[node].wildcards.push_back({entry.key, entry.value, child});
  return child;
}

void DescriptorIndex::Add(const DescriptorPattern& pattern, int limit) {
  size_t node = NodeOf(DomainName(pattern.domain));
  for (const EntryPattern& entry : pattern.entries) node = ChildOf(node, entry);
  nodes_[node].limits.push_back(limit);
}

const DescriptorIndex::Node* DescriptorIndex::Search(
    const Node& node, std::span<const DescriptorEntry> entries) const {
  if (entries.empty()) return node.limits.empty() ? nullptr : &node;
  const DescriptorEntry& entry = entries.front();
  const auto below = [&](size_t child) {
    return child == kNone ? nullptr : Search(nodes_[child], entries.subspan(1));
  };
  base::KeyHasher::State name = node.front;
  name.Add(entry.key);
  if (node.has_exact) {
    base::KeyHasher::State exact = name;
    if (const Node* found = below(FindNode(exact.Add(entry.value).Finish()))) return found;
  }
  for (const Wildcard& wildcard : node.wildcards) {
    if (wildcard.key != entry.key || !MatchesWildcard(wildcard.value, entry.value)) continue;
    if (const Node* found = below(wildcard.child)) return found;
  }
  return node.has_any ? below(FindNode(name.Add(kAnyValue).Finish())) : nullptr;
}

std::span<const int> DescriptorIndex::Find(std::string_view domain,
                                           std::span<const DescriptorEntry> entries) const {
  if (nodes_.empty()) return {};
  const size_t root = FindNode(DomainName(domain));
  if (root == kNone || entries.empty()) return {};
  const Node* const found = Search(nodes_[root], entries);
  return found == nullptr ? std::span<const int>() : std::span<const int>(found->limits);
}

}  // namespace weir::policy
