// DescriptorIndex: finds the limits of a descriptor. Among the patterns of its domain that match,
// the most specific wins: entry by entry from the first, an exact value goes before a wildcard, a
// wildcard before one that was written after it, and all before a key alone. Every limit bound to
// that pattern applies.
//
//   DescriptorIndex index;
//   index.Add(pattern, limit.index);
//   for (const int limit : index.Find("mongo_cps", entries)) ...
//
// The patterns form a tree, an entry a level. A child is found by its key and its exact value, and
// only wildcards are tried one by one. A search meets each node once at most, and mostly one a
// level.
//
// Thread safety: Find may be called from any number of threads once nothing is added any more. It
// neither allocates nor blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/descriptor_pattern.h"
#include "policy/text_table.h"

namespace weir::policy {

class DescriptorIndex {
 public:
  void Add(const DescriptorPattern& pattern, int limit);

  // The limits bound to the most specific pattern that matches, in the order added; none when no
  // pattern matches. The view holds until the next Add.
  std::span<const int> Find(std::string_view domain,
                            std::span<const DescriptorEntry> entries) const;

 private:
  static constexpr size_t kNone = TextTable::kNone;
  struct Wildcard {
    std::string value;
    size_t child = 0;
  };
  // The children of a node for one key.
  struct Branch {
    TextTable exact;
    std::vector<Wildcard> wildcards;
    size_t any = kNone;
  };
  struct Node {
    TextTable keys;  // Indexes of branches_.
    std::vector<int> limits;
  };

  size_t ChildOf(size_t node, const EntryPattern& entry);
  size_t NodeAt(size_t& index);  // Made when it is not there.
  const Node* Search(size_t node, std::span<const DescriptorEntry> entries) const;

  TextTable domains_;  // Indexes of nodes_.
  std::vector<Node> nodes_;
  std::vector<Branch> branches_;
};

}  // namespace weir::policy
