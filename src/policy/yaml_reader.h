// Strict reading of a configuration: every value by our own rules, every mistake with its place.
//
//   YamlReader reader(env);
//   MapReader map(reader, node, "bounds", {"header", "body"});      // unknown and doubled keys
//   fail if (const YamlNode* body = map.Find("body")) {
//     if (auto bytes = reader.Size(*body, "bounds.body", 0, 1 << 30)) bounds.body_bytes = *bytes;
//   }
//   if (reader.has_errors()) return reader.TakeErrors();
//
// A reader that meets a mistake notes it and gives nothing back; reading goes on, so that one run
// shows all mistakes. Thread safety: belongs to one load.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/config.h"
#include "policy/policy.h"
#include "policy/yaml_tree.h"
#include "weir/result.h"

namespace weir::policy {

// One value of a setting that has a few, by name.
template <typename T>
using Choices = std::span<const std::pair<std::string_view, T>>;

class YamlReader {
 public:
  explicit YamlReader(Env env) : env_(std::move(env)) {}

  // Makes `name` a file of the configuration; its number is what YamlMark::file holds.
  int AddFile(std::string name);
  const std::vector<std::string>& files() const { return files_; }

  void Fail(const YamlMark& mark, std::string message);
  void Warn(const YamlMark& mark, std::string message);
  bool has_errors() const { return !errors_.empty(); }

  // In the order of the files and lines, at most Policy::kMaxErrors; the last says how many more.
  std::vector<ConfigError> TakeErrors();
  std::vector<ConfigError> TakeWarnings();

  Place PlaceOf(const YamlMark& mark) const;
  std::string PlaceText(const YamlMark& mark) const { return ToString(PlaceOf(mark)); }

  // A scalar with ${VAR} and ${VAR:-default} expanded; `$$` before a brace stands for one `$`.
  // `what` names the setting in messages, as in "store.max_keys".
  std::optional<std::string> Text(const YamlNode& node, std::string_view what);
  std::optional<bool> Bool(const YamlNode& node, std::string_view what);
  std::optional<int64_t> Integer(const YamlNode& node, std::string_view what, int64_t least,
                                 int64_t most);
  std::optional<int64_t> Size(const YamlNode& node, std::string_view what, int64_t least,
                              int64_t most);
  std::optional<std::chrono::nanoseconds> Duration(const YamlNode& node, std::string_view what,
                                                   std::chrono::nanoseconds least,
                                                   std::chrono::nanoseconds most);

  // A text, or {file: PATH} read now; one newline at the file's end is dropped. Never empty.
  std::optional<Secret> ReadSecret(const YamlNode& node, std::string_view what);

  // A path, joined to the directory of the file that names it.
  std::optional<std::string> Path(const YamlNode& node, std::string_view what);
  std::string JoinPath(const YamlMark& mark, const std::string& path) const;

  // The items of a list. A scalar or map alone counts as a list of one when `or_one`.
  std::optional<std::vector<const YamlNode*>> List(const YamlNode& node, std::string_view what,
                                                   bool or_one = false);

  template <typename T>
  std::optional<T> Choice(const YamlNode& node, std::string_view what, Choices<T> choices) {
    const auto text = Text(node, what);
    if (!text) return std::nullopt;
    std::vector<std::string_view> names;
    for (const auto& [name, value] : choices) {
      if (name == *text) return value;
      names.push_back(name);
    }
    FailChoice(node, what, *text, names);
    return std::nullopt;
  }

 private:
  std::optional<std::string> Expand(const YamlNode& node, std::string_view what);
  void FailChoice(const YamlNode& node, std::string_view what, const std::string& text,
                  std::span<const std::string_view> names);
  ConfigError MakeEntry(const YamlMark& mark, std::string message) const;

  struct Entry {
    YamlMark mark;
    std::string message;
  };

  Env env_;
  std::vector<std::string> files_;
  std::vector<Entry> errors_;
  std::vector<Entry> warnings_;
};

// A key that a later version brings, and what to say about it.
struct LaterKey {
  std::string_view key;
  std::string_view what;
};

// A map whose keys are checked when it is made: unknown ones, doubled ones, `<<`, and keys of later
// versions fail there, each once.
class MapReader {
 public:
  MapReader(YamlReader& reader, const YamlNode& node, std::string_view what,
            std::initializer_list<std::string_view> known,
            std::initializer_list<LaterKey> later = {});

  // False when the node is no map; Find then finds nothing.
  bool ok() const { return node_ != nullptr; }

  // The value of `key`, or null. REQUIRES: `key` is among the known.
  const YamlNode* Find(std::string_view key) const;

  // As Find, but an absent key is a mistake, noted at the map's place.
  const YamlNode* Require(std::string_view key) const;

 private:
  YamlReader& reader_;
  const YamlNode* node_ = nullptr;
  std::string what_;
};

// Fails for each key of `map` that repeats an earlier one; `what` as in YamlReader.
void RefuseDoubledKeys(YamlReader& reader, const YamlNode& map, std::string_view what);

// What a file holds, or why not. Bounded in size, and in time: a pipe, socket or device is refused,
// unless kind is kAny, for what the operator names on the command line (`weir validate <(...)`).
enum class FileKind : uint8_t { kRegular, kAny };
Result<std::string> ReadWholeFile(const std::string& path, size_t max_bytes,
                                  FileKind kind = FileKind::kRegular);

}  // namespace weir::policy
