// DescriptorIndex: finds the limits of a descriptor. Among the patterns of its domain that match,
// the most specific wins: entry by entry from the first, an exact value goes before a wildcard, a
// wildcard before one that was written after it, and all before a key alone. Every limit bound to
// that pattern applies.
//
//   DescriptorIndex index;
//   index.Add(pattern, limit.index);
//   for (const int limit : index.Find("mongo_cps", entries)) ...
//
// The patterns form a tree, an entry a level; a child is found by the hash of its entry, and only
// wildcards are tried one by one. A search meets each node once at most, and mostly one a level.
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

#include "base/keyed_hash.h"
#include "policy/descriptor_pattern.h"

namespace weir::policy {

class DescriptorIndex {
 public:
  // A secret for the hashes is drawn from the operating system.
  DescriptorIndex();

  void Add(const DescriptorPattern& pattern, int limit);

  // The limits bound to the most specific pattern that matches, in the order added; none when no
  // pattern matches. The view holds until the next Add.
  std::span<const int> Find(std::string_view domain,
                            std::span<const DescriptorEntry> entries) const;

 private:
  struct Wildcard {
    std::string key;
    std::string value;
    size_t child = 0;
  };
  struct Node {
    base::KeyHasher::State front;  // Of its children's names.
    bool has_exact = false;        // Some child is for an exact value,
    bool has_any = false;          // or for any value.
    std::vector<Wildcard> wildcards;
    std::vector<int> limits;
  };
  // A name of 128 bits under the secret stands for what it hashes, as in the stores.
  struct Slot {
    base::Key128 name;
    size_t node = kNone;
  };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  base::Key128 DomainName(std::string_view domain) const;
  size_t FindNode(base::Key128 name) const;
  size_t NodeOf(base::Key128 name);  // Made when it is not there.
  size_t NewNode();
  void Put(base::Key128 name, size_t node);
  size_t ChildOf(size_t node, const EntryPattern& entry);
  const Node* Search(const Node& node, std::span<const DescriptorEntry> entries) const;

  base::KeyHasher hasher_;
  std::vector<Node> nodes_;
  std::vector<Slot> slots_;  // Open addressing; a power of two, at most half full.
  size_t taken_ = 0;
};

}  // namespace weir::policy
