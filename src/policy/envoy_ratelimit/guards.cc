#include "policy/envoy_ratelimit/guards.h"

#include <algorithm>
#include <span>

namespace weir::policy::envoy_ratelimit {
namespace {

using Kind = EntryPattern::Kind;
using Rest = std::span<const EntryPattern>;

// Whether some value may match both. Of two wildcards that is not known, and a guard too many does
// no harm.
bool MayMeet(const EntryPattern& a, const EntryPattern& b) {
  if (a.key != b.key) return false;
  if (a.kind == Kind::kExact) return b.Matches({a.key, a.value});
  if (b.kind == Kind::kExact) return a.Matches({b.key, b.value});
  return true;
}

class Finder {
 public:
  std::map<const ServiceNode*, Guards> Find(const ServiceNode& root) {
    Visit(root);
    return std::move(guards_);
  }

 private:
  // The path holds the nodes above and this one, without the root.
  void Visit(const ServiceNode& node) {
    for (const auto& child : node.children) {
      path_.push_back({&node, child.get()});
      if (child->rate) GuardAgainst();
      Visit(*child);
      path_.pop_back();
    }
  }

  // The limit at the end of the path must not be found where the service goes another way.
  void GuardAgainst() {
    Entries entries;
    for (const Step& step : path_) entries.push_back(step.node->entry);
    for (size_t i = 0; i < path_.size(); ++i) {
      const Rest rest = Rest(entries).subspan(i + 1);
      bool before = true;  // Wildcards go in their order.
      for (const auto& sibling : path_[i].parent->children) {
        if (sibling.get() == path_[i].node) {
          before = false;
          continue;
        }
        const EntryPattern& entry = path_[i].node->entry;
        const bool wins =
            sibling->entry.kind < entry.kind ||
            (sibling->entry.kind == Kind::kWildcard && entry.kind == Kind::kWildcard && before);
        if (wins && MayMeet(sibling->entry, entry)) Guard(*sibling, rest);
      }
    }
  }

  // What the service says of descriptors that lead it to `node` and go on as `rest`: nothing, where
  // no child matches or the last node has no rate.
  void Guard(const ServiceNode& node, Rest rest) {
    if (rest.empty()) {
      if (!node.rate) guards_[&node].here = true;
      return;
    }
    const EntryPattern& entry = rest.front();
    if (entry.kind == Kind::kExact) {
      const ServiceNode* const child = ChildFor(node, {entry.key, entry.value});
      if (child != nullptr) return Guard(*child, rest.subspan(1));
      return AddBelow(node, rest);
    }
    bool all_caught = false;
    for (const auto& child : node.children) {
      if (!MayMeet(child->entry, entry)) continue;
      Guard(*child, rest.subspan(1));
      all_caught = all_caught || child->entry.kind == Kind::kAnyValue || child->entry == entry;
    }
    if (!all_caught) AddBelow(node, rest);
  }

  void AddBelow(const ServiceNode& node, Rest rest) {
    Entries entries(rest.begin(), rest.end());
    std::vector<Entries>& below = guards_[&node].below;
    if (std::ranges::find(below, entries) == below.end()) below.push_back(std::move(entries));
  }

  struct Step {
    const ServiceNode* parent;
    const ServiceNode* node;
  };
  std::vector<Step> path_;
  std::map<const ServiceNode*, Guards> guards_;
};

}  // namespace

const ServiceNode* ChildFor(const ServiceNode& node, const DescriptorEntry& entry) {
  for (const Kind kind : {Kind::kExact, Kind::kWildcard, Kind::kAnyValue}) {
    for (const auto& child : node.children) {
      if (child->entry.kind == kind && child->entry.Matches(entry)) return child.get();
    }
  }
  return nullptr;
}

std::map<const ServiceNode*, Guards> FindGuards(const ServiceNode& root) {
  return Finder().Find(root);
}

}  // namespace weir::policy::envoy_ratelimit
