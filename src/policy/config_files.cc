#include "policy/config_files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

namespace weir::policy {
namespace {

constexpr std::string_view kLists[] = {"upstreams", "routes", "attributes", "limits", "include"};

bool IsList(std::string_view section) {
  return std::ranges::find(kLists, section) != std::end(kLists);
}

// The same for all spellings of a path, symbolic links resolved.
std::string Canonical(const std::string& path) {
  std::error_code error;
  auto canonical = std::filesystem::weakly_canonical(path, error);
  return error ? path : canonical.string();
}

// The files that a pattern names, sorted, so that the order does not depend on the directory.
std::vector<std::string> Glob(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  return paths;
}

}  // namespace

void ConfigFiles::Load(const std::string& path) {
  const int file = reader_.AddFile(path);
  auto text = ReadWholeFile(path, YamlTree::kMaxTextBytes, FileKind::kAny);
  if (!text) {
    reader_.Fail({file, 0, 0}, text.error().message);
    return;
  }
  open_.push_back(Canonical(path));
  AddText(*text, file);
  open_.pop_back();
}

void ConfigFiles::LoadText(const std::string& text, const std::string& name) {
  const int file = reader_.AddFile(name);
  open_.push_back(Canonical(name));
  AddText(text, file);
  open_.pop_back();
}

void ConfigFiles::AddText(const std::string& text, int file) {
  auto parsed = ParseYaml(text, file);
  if (!parsed) {
    reader_.Fail(parsed.error().mark, parsed.error().message);
    return;
  }
  const YamlNode& root = trees_.emplace_back(std::move(*parsed)).root();
  if (root.kind == YamlNode::Kind::kNull) return;
  const MapReader map(reader_, root, "",
                      {"listen", "threads", "config", "store", "identity", "timeouts", "bounds",
                       "answers", "cors", "upstreams", "routes", "attributes", "limits", "include"},
                      {{"plans", "plans come with a later version"},
                       {"prices", "metering by price comes with a later version"},
                       {"models", "metering by model comes with a later version"},
                       {"tracing", "traces come with a later version"}});
  if (!map.ok()) return;
  for (const YamlEntry& entry : root.entries) AddSection(entry);
  if (const YamlNode* include = map.Find("include")) Include(*include);
}

void ConfigFiles::AddSection(const YamlEntry& entry) {
  if (entry.key->kind != YamlNode::Kind::kScalar) return;
  const std::string& name = entry.key->text;
  std::vector<YamlEntry>& entries = sections_[name];
  const bool in_other_file =
      !entries.empty() && entries.front().key->mark.file != entry.key->mark.file;
  if (in_other_file && !IsList(name)) {
    reader_.Fail(entry.key->mark, "`" + name + "` is given twice: here and at " +
                                      reader_.PlaceText(entries.front().key->mark));
    return;
  }
  // A section doubled within one file is refused by its map; reading it once is enough.
  if (!entries.empty() && entries.back().key->mark.file == entry.key->mark.file) return;
  entries.push_back(entry);
}

void ConfigFiles::Include(const YamlNode& node) {
  const auto items = reader_.List(node, "include", /*or_one=*/true);
  if (!items) return;
  for (const YamlNode* item : *items) {
    if (const auto pattern = reader_.Path(*item, "include")) IncludePattern(*item, *pattern);
  }
}

void ConfigFiles::IncludePattern(const YamlNode& node, const std::string& pattern) {
  const bool is_pattern = pattern.find_first_of("*?[") != std::string::npos;
  if (!is_pattern) {
    IncludeFile(node, pattern);
    return;
  }
  patterns_.push_back(pattern);
  // A pattern may match nothing: `limits.d/*.yaml` of an empty folder is no mistake.
  for (const std::string& path : Glob(pattern)) IncludeFile(node, path);
}

void ConfigFiles::IncludeFile(const YamlNode& node, const std::string& path) {
  std::string canonical = Canonical(path);
  if (std::ranges::find(open_, canonical) != open_.end()) {
    reader_.Fail(node.mark, "include: " + path + " includes itself, directly or through others");
    return;
  }
  if (open_.size() > kMaxIncludeDepth) {
    reader_.Fail(node.mark, "include: files include each other deeper than " +
                                std::to_string(kMaxIncludeDepth));
    return;
  }
  if (reader_.files().size() >= kMaxFiles) {
    reader_.Fail(node.mark, "include: more than " + std::to_string(kMaxFiles) + " files");
    return;
  }
  const auto [known, is_new] = included_.try_emplace(canonical, node.mark);
  if (!is_new) {
    reader_.Fail(node.mark, "include: " + path + " is included twice: here and at " +
                                reader_.PlaceText(known->second));
    return;
  }
  auto text = ReadWholeFile(path, YamlTree::kMaxTextBytes);
  if (!text) {
    reader_.Fail(node.mark, "include: " + text.error().message);
    return;
  }
  open_.push_back(std::move(canonical));
  AddText(*text, reader_.AddFile(path));
  open_.pop_back();
}

const YamlNode* ConfigFiles::Find(std::string_view section) const {
  const auto found = sections_.find(std::string(section));
  return found == sections_.end() ? nullptr : found->second.front().value;
}

std::vector<const YamlNode*> ConfigFiles::Items(std::string_view section) const {
  std::vector<const YamlNode*> items;
  const auto found = sections_.find(std::string(section));
  if (found == sections_.end()) return items;
  for (const YamlEntry& entry : found->second) {
    // An empty list is often left as `limits:`; there is nothing wrong with it.
    if (entry.value->kind == YamlNode::Kind::kNull) continue;
    const auto list = reader_.List(*entry.value, section);
    if (list) items.insert(items.end(), list->begin(), list->end());
  }
  return items;
}

}  // namespace weir::policy
