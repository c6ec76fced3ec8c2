// YAML text as a tree with places, and nothing decided: no types are guessed, no keys are merged.
//
//   auto tree = ParseYaml(text, /*file=*/0);
//   if (!tree) return tree.error();               // one syntax error with its place
//   const YamlNode& root = tree->root();
//
// Bounded: text, nesting, and the size of the tree with every alias written out, so that an "alias
// bomb" costs an error, not memory. Thread safety: plain values. A YamlTree owns its nodes.
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// A place in one of the files of a configuration; line and column count from 1, in bytes.
struct YamlMark {
  int file = 0;
  int line = 0;
  int column = 0;
};

struct YamlNode;

struct YamlEntry {
  const YamlNode* key;
  const YamlNode* value;
};

struct YamlNode {
  enum class Kind : uint8_t { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  bool anchored = false;
  YamlMark mark;
  std::string text;                    // kScalar, as written (quotes and escapes resolved).
  std::vector<const YamlNode*> items;  // kSequence
  std::vector<YamlEntry> entries;      // kMap, in the order written, duplicates included.
  int64_t size = 1;                    // Nodes below and this one, aliases written out.
};

struct YamlSyntaxError {
  YamlMark mark;
  std::string message;
};

class YamlTree {
 public:
  static constexpr size_t kMaxTextBytes = 4 << 20;
  static constexpr int64_t kMaxNodes = 200'000;

  // Null for an empty document.
  const YamlNode& root() const { return *root_; }

 private:
  friend class YamlTreeBuilder;
  friend std::expected<YamlTree, YamlSyntaxError> ParseYaml(const std::string& text, int file);
  std::deque<YamlNode> nodes_;  // Does not move its elements as it grows.
  const YamlNode* root_ = nullptr;
};

// One document; `file` is put into the marks. Errors: not UTF-8, too large, syntax, several
// documents.
std::expected<YamlTree, YamlSyntaxError> ParseYaml(const std::string& text, int file);

}  // namespace weir::policy
