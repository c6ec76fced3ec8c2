// The files of one configuration: the main one and all that `include` names, as one set of
// sections.
//
//   ConfigFiles files(reader);
//   files.Load("weir.yaml");
//   if (const YamlNode* store = files.Find("store")) ReadStore(reader, *store, config.store);
//   for (const YamlNode* item : files.Items("limits")) ...
//
// Lists (upstreams, routes, attributes, limits) of all files are joined; any other section may
// stand in one file only. Thread safety: belongs to one load; it owns the trees that its nodes are
// in.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/yaml_reader.h"
#include "policy/yaml_tree.h"

namespace weir::policy {

class ConfigFiles {
 public:
  static constexpr size_t kMaxFiles = 256;
  static constexpr size_t kMaxIncludeDepth = 8;

  explicit ConfigFiles(YamlReader& reader) : reader_(reader) {}

  // Reads the main file and what it includes. Mistakes are noted in the reader. Blocks on reads.
  void Load(const std::string& path);
  void LoadText(const std::string& text, const std::string& name);

  // A section that is no list, or null.
  const YamlNode* Find(std::string_view section) const;

  // The items of a list section in all files, in the order read.
  std::vector<const YamlNode*> Items(std::string_view section) const;

  // The patterns of `include`, as paths: what they match may come later.
  const std::vector<std::string>& patterns() const { return patterns_; }

  // Where the main file begins.
  YamlMark start() const { return {0, 1, 1}; }

 private:
  void AddText(const std::string& text, int file);
  void AddSection(const YamlEntry& entry);
  void Include(const YamlNode& node);
  void IncludePattern(const YamlNode& node, const std::string& pattern);
  void IncludeFile(const YamlNode& node, const std::string& path);

  YamlReader& reader_;
  std::deque<YamlTree> trees_;
  std::unordered_map<std::string, std::vector<YamlEntry>> sections_;
  std::vector<std::string> patterns_;
  std::vector<std::string> open_;                       // Canonical paths that are being read.
  std::unordered_map<std::string, YamlMark> included_;  // Canonical paths to what included them.
};

}  // namespace weir::policy
