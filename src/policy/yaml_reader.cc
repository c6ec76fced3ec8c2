#include "policy/yaml_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/suggest.h"
#include "policy/rate_text.h"

namespace weir::policy {
namespace {

constexpr size_t kMaxNotes = 1000;
constexpr size_t kMaxSecretBytes = 64 << 10;
constexpr size_t kMaxScalarBytes = 64 << 10;

bool IsNameChar(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (!first && c >= '0' && c <= '9');
}

bool IsVariableName(std::string_view name) {
  if (name.empty()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    if (!IsNameChar(name[i], i == 0)) return false;
  }
  return true;
}

// What stands there instead of a file to read; "" for a file, and for nothing at all.
std::string_view InsteadOfAFile(mode_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "it is a directory; a file is meant";
  if (S_ISFIFO(mode)) return "it is a named pipe, which would be waited for; a file is meant";
  if (S_ISSOCK(mode)) return "it is a socket; a file is meant";
  return "it is a device; a file is meant";
}

std::string KeyName(std::string_view what, std::string_view key) {
  return what.empty() ? "`" + std::string(key) + "`"
                      : "`" + std::string(what) + "." + std::string(key) + "`";
}

std::string_view KindName(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return "a single value";
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
  }
  return "nothing";
}

}  // namespace

int YamlReader::AddFile(std::string name) {
  files_.push_back(std::move(name));
  return static_cast<int>(files_.size()) - 1;
}

void YamlReader::Fail(const YamlMark& mark, std::string message) {
  if (errors_.size() < kMaxNotes) errors_.push_back({mark, std::move(message)});
}

void YamlReader::Warn(const YamlMark& mark, std::string message) {
  if (warnings_.size() < kMaxNotes) warnings_.push_back({mark, std::move(message)});
}

ConfigError YamlReader::MakeEntry(const YamlMark& mark, std::string message) const {
  return {files_[static_cast<size_t>(mark.file)], mark.line, mark.column, std::move(message)};
}

std::vector<ConfigError> YamlReader::TakeErrors() {
  std::ranges::stable_sort(errors_, [](const Entry& a, const Entry& b) {
    return std::tie(a.mark.file, a.mark.line, a.mark.column) <
           std::tie(b.mark.file, b.mark.line, b.mark.column);
  });
  // What an alias repeats is wrong once.
  const auto repeated = std::ranges::unique(errors_, [](const Entry& a, const Entry& b) {
    return a.message == b.message && a.mark.file == b.mark.file && a.mark.line == b.mark.line &&
           a.mark.column == b.mark.column;
  });
  errors_.erase(repeated.begin(), repeated.end());
  std::vector<ConfigError> out;
  const size_t most = Policy::kMaxErrors;
  const size_t shown = errors_.size() > most ? most - 1 : errors_.size();
  for (size_t i = 0; i < shown; ++i) {
    out.push_back(MakeEntry(errors_[i].mark, std::move(errors_[i].message)));
  }
  if (shown < errors_.size()) {
    out.push_back(MakeEntry(errors_[shown].mark, std::to_string(errors_.size() - shown) +
                                                     " more mistakes from here on"));
  }
  errors_.clear();
  return out;
}

std::vector<ConfigError> YamlReader::TakeWarnings() {
  std::vector<ConfigError> out;
  for (Entry& entry : warnings_) out.push_back(MakeEntry(entry.mark, std::move(entry.message)));
  warnings_.clear();
  return out;
}

Place YamlReader::PlaceOf(const YamlMark& mark) const {
  return {files_[static_cast<size_t>(mark.file)], mark.line, mark.column};
}

std::optional<std::string> YamlReader::Expand(const YamlNode& node, std::string_view what) {
  std::string out;
  std::string_view rest = node.text;
  while (true) {
    const size_t dollar = rest.find('$');
    out += rest.substr(0, dollar);
    if (dollar == std::string_view::npos) return out;
    rest.remove_prefix(dollar);
    if (rest.starts_with("$${")) {
      out += "${";
      rest.remove_prefix(3);
      continue;
    }
    if (!rest.starts_with("${")) {
      out += '$';
      rest.remove_prefix(1);
      continue;
    }
    const size_t end = rest.find('}');
    const std::string_view body = rest.substr(2, end == std::string_view::npos ? 0 : end - 2);
    const size_t colon = body.find(":-");
    const std::string_view name = body.substr(0, colon);
    if (!IsVariableName(name)) {
      Fail(node.mark, std::string(what) +
                          ": a variable is written ${NAME} or ${NAME:-default}; $${ stands for ${");
      return std::nullopt;
    }
    const auto value = env_ ? env_(name) : std::nullopt;
    if (colon != std::string_view::npos) {
      out += value && !value->empty() ? *value : std::string(body.substr(colon + 2));
    } else if (value) {
      out += *value;
    } else {
      Fail(node.mark, std::string(what) + ": the variable " + std::string(name) +
                          " is not set; set it, or write ${" + std::string(name) + ":-default}");
      return std::nullopt;
    }
    if (out.size() > kMaxScalarBytes) {
      Fail(node.mark, std::string(what) + ": longer than 64 KiB");
      return std::nullopt;
    }
    rest.remove_prefix(end + 1);
  }
}

std::optional<std::string> YamlReader::Text(const YamlNode& node, std::string_view what) {
  if (node.kind != YamlNode::Kind::kScalar) {
    Fail(node.mark,
         std::string(what) + " must be a single value, not " + std::string(KindName(node)));
    return std::nullopt;
  }
  return Expand(node, what);
}

std::optional<bool> YamlReader::Bool(const YamlNode& node, std::string_view what) {
  static constexpr std::pair<std::string_view, bool> kBools[] = {{"true", true}, {"false", false}};
  return Choice<bool>(node, what, kBools);
}

std::optional<int64_t> YamlReader::Integer(const YamlNode& node, std::string_view what,
                                           int64_t least, int64_t most) {
  const auto text = Text(node, what);
  if (!text) return std::nullopt;
  const auto value = ParseWholeNumber(*text, what);
  if (value && *value >= least && *value <= most) return *value;
  Fail(node.mark, std::string(what) + " must be a whole number from " + std::to_string(least) +
                      " to " + std::to_string(most) + ", not `" + *text + "`");
  return std::nullopt;
}

std::optional<int64_t> YamlReader::Size(const YamlNode& node, std::string_view what, int64_t least,
                                        int64_t most) {
  const auto text = Text(node, what);
  if (!text) return std::nullopt;
  const auto value = ParseSize(*text);
  if (!value) {
    Fail(node.mark, std::string(what) + ": " + value.error().message);
    return std::nullopt;
  }
  if (*value >= least && *value <= most) return *value;
  Fail(node.mark, std::string(what) + " must be " + std::to_string(least) + " to " +
                      std::to_string(most) + " bytes, not `" + *text + "`");
  return std::nullopt;
}

std::optional<std::chrono::nanoseconds> YamlReader::Duration(const YamlNode& node,
                                                             std::string_view what,
                                                             std::chrono::nanoseconds least,
                                                             std::chrono::nanoseconds most) {
  const auto text = Text(node, what);
  if (!text) return std::nullopt;
  const auto value = ParseDuration(*text);
  if (!value) {
    Fail(node.mark, std::string(what) + ": " + value.error().message);
    return std::nullopt;
  }
  if (*value >= least && *value <= most) return *value;
  Fail(node.mark, std::string(what) + " must be from " + DurationText(least) + " to " +
                      DurationText(most) + ", not `" + *text + "`");
  return std::nullopt;
}

std::optional<Secret> YamlReader::ReadSecret(const YamlNode& node, std::string_view what) {
  std::optional<std::string> text;
  if (node.kind == YamlNode::Kind::kMap) {
    const MapReader map(*this, node, what, {"file"});
    const YamlNode* file = map.Require("file");
    if (file == nullptr) return std::nullopt;
    const auto path = Path(*file, std::string(what) + ".file");
    if (!path) return std::nullopt;
    auto content = ReadWholeFile(*path, kMaxSecretBytes);
    if (!content) {
      Fail(file->mark, std::string(what) + ": " + content.error().message);
      return std::nullopt;
    }
    if (content->ends_with('\n')) content->pop_back();
    if (content->ends_with('\r')) content->pop_back();
    text = std::move(*content);
  } else {
    text = Text(node, what);
  }
  if (!text) return std::nullopt;
  if (text->empty()) {
    Fail(node.mark, std::string(what) + " is empty; leave it out, or give it a value");
    return std::nullopt;
  }
  return Secret(std::move(*text));
}

std::string YamlReader::JoinPath(const YamlMark& mark, const std::string& path) const {
  const std::filesystem::path base(files_[static_cast<size_t>(mark.file)]);
  return (base.parent_path() / path).string();
}

std::optional<std::string> YamlReader::Path(const YamlNode& node, std::string_view what) {
  const auto text = Text(node, what);
  if (!text) return std::nullopt;
  if (text->empty()) {
    Fail(node.mark, std::string(what) + " must be a path, not empty");
    return std::nullopt;
  }
  std::string path = JoinPath(node.mark, *text);
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) {
    if (const std::string_view fault = InsteadOfAFile(status.st_mode); !fault.empty()) {
      Fail(node.mark, std::string(what) + ": cannot read " + path + ": " + std::string(fault));
      return std::nullopt;
    }
  }
  return path;
}

std::optional<std::vector<const YamlNode*>> YamlReader::List(const YamlNode& node,
                                                             std::string_view what, bool or_one) {
  if (node.kind == YamlNode::Kind::kSequence) return node.items;
  if (or_one && node.kind != YamlNode::Kind::kNull) return std::vector<const YamlNode*>{&node};
  Fail(node.mark, std::string(what) + " must be a list, not " + std::string(KindName(node)));
  return std::nullopt;
}

void YamlReader::FailChoice(const YamlNode& node, std::string_view what, const std::string& text,
                            std::span<const std::string_view> names) {
  Fail(node.mark, std::string(what) + " must be " + base::ListOfNames(names) + ", not `" + text +
                      "`" + base::DidYouMean(text, names));
}

void RefuseDoubledKeys(YamlReader& reader, const YamlNode& map, std::string_view what) {
  for (size_t i = 0; i < map.entries.size(); ++i) {
    const YamlNode& key = *map.entries[i].key;
    for (size_t j = 0; j < i; ++j) {
      const YamlNode& earlier = *map.entries[j].key;
      if (key.kind != YamlNode::Kind::kScalar || key.text != earlier.text) continue;
      reader.Fail(key.mark, KeyName(what, key.text) + " is given twice: here and at " +
                                reader.PlaceText(earlier.mark));
      break;
    }
  }
}

MapReader::MapReader(YamlReader& reader, const YamlNode& node, std::string_view what,
                     std::initializer_list<std::string_view> known,
                     std::initializer_list<LaterKey> later)
    : reader_(reader), what_(what) {
  if (node.kind != YamlNode::Kind::kMap) {
    const std::string name = what.empty() ? "a configuration" : std::string(what);
    reader.Fail(node.mark, name + " must be a map of settings, not " + std::string(KindName(node)));
    return;
  }
  node_ = &node;
  RefuseDoubledKeys(reader, node, what);
  for (const YamlEntry& entry : node.entries) {
    const YamlNode& key = *entry.key;
    if (key.kind != YamlNode::Kind::kScalar) {
      reader.Fail(key.mark, "a key must be a single word, not " + std::string(KindName(key)));
      continue;
    }
    if (std::ranges::find(known, key.text) != known.end()) continue;
    const auto coming = std::ranges::find(later, key.text, &LaterKey::key);
    if (coming != later.end()) {
      reader.Fail(key.mark, KeyName(what, key.text) + " is not there yet: " +
                                std::string(coming->what) + "; leave it out");
    } else if (key.text == "<<") {
      reader.Fail(key.mark,
                  "merge keys (`<<`) are not read; write the settings out, or use an "
                  "alias for a whole value");
    } else {
      const std::vector<std::string_view> names(known);
      reader.Fail(key.mark,
                  "unknown key " + KeyName(what, key.text) + base::DidYouMean(key.text, names));
    }
  }
}

const YamlNode* MapReader::Find(std::string_view key) const {
  if (node_ == nullptr) return nullptr;
  for (const YamlEntry& entry : node_->entries) {
    if (entry.key->kind == YamlNode::Kind::kScalar && entry.key->text == key) return entry.value;
  }
  return nullptr;
}

const YamlNode* MapReader::Require(std::string_view key) const {
  const YamlNode* value = Find(key);
  if (value == nullptr && node_ != nullptr) {
    reader_.Fail(node_->mark, KeyName(what_, key) + " is missing");
  }
  return value;
}

Result<std::string> ReadWholeFile(const std::string& path, size_t max_bytes, FileKind kind) {
  const auto failed = [&](std::string_view why) {
    return MakeError(ErrorCode::kNotFound, "cannot read " + path + ": " + std::string(why));
  };
  // Opening a pipe waits for its writer, unless told not to.
  const bool regular = kind == FileKind::kRegular;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (regular ? O_NONBLOCK : 0));
  if (descriptor < 0) return failed(std::strerror(errno));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(::fdopen(descriptor, "rb"),
                                                             &std::fclose);
  struct stat status{};
  if (regular && ::fstat(descriptor, &status) == 0 && !InsteadOfAFile(status.st_mode).empty())
    return failed(InsteadOfAFile(status.st_mode));
  std::string content;
  char block[16 << 10];
  while (const size_t count = std::fread(block, 1, sizeof(block), file.get())) {
    content.append(block, count);
    if (content.size() > max_bytes) return failed("it is too large");
  }
  if (std::ferror(file.get()) != 0) return failed(std::strerror(errno));
  return content;
}

}  // namespace weir::policy
