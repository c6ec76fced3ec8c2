#include "policy/yaml_tree.h"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <optional>
#include <sstream>
#include <unordered_map>

namespace weir::policy {
namespace {

constexpr int kMaxDepth = 64;

// The first byte that begins no well-formed UTF-8 sequence, or npos (Unicode 15, table 3-7).
size_t FindMalformedUtf8(std::string_view text) {
  size_t i = 0;
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(text[at]); };
  while (i < text.size()) {
    const uint8_t lead = byte(i);
    if (lead == 0) return i;
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xc2 ? 0
                          : lead < 0xe0 ? 2
                          : lead < 0xf0 ? 3
                          : lead < 0xf5 ? 4
                                        : 0;
    if (length == 0 || i + length > text.size()) return i;
    for (size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return i;
    }
    if ((lead == 0xe0 && byte(i + 1) < 0xa0) || (lead == 0xed && byte(i + 1) > 0x9f) ||
        (lead == 0xf0 && byte(i + 1) < 0x90) || (lead == 0xf4 && byte(i + 1) > 0x8f)) {
      return i;
    }
    i += length;
  }
  return std::string_view::npos;
}

YamlMark MarkAt(std::string_view text, size_t offset, int file) {
  YamlMark mark{file, 1, 1};
  for (size_t i = 0; i < offset; ++i) {
    if (text[i] == '\n') {
      ++mark.line;
      mark.column = 1;
    } else {
      ++mark.column;
    }
  }
  return mark;
}

}  // namespace

// Turns the parser's events into nodes. After the first error it ignores what follows.
class YamlTreeBuilder : public YAML::EventHandler {
 public:
  YamlTreeBuilder(YamlTree& tree, int file) : tree_(tree), file_(file) {}

  const std::optional<YamlSyntaxError>& error() const { return error_; }
  int documents() const { return documents_; }
  YamlMark document_mark() const { return document_mark_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    ++documents_;
    document_mark_ = At(mark);
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (YamlNode* node = Begin(mark, anchor, YamlNode::Kind::kNull)) Finish(node, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (YamlNode* node = Begin(mark, anchor, YamlNode::Kind::kScalar)) {
      RefuseTag(mark, tag);
      node->text = value;
      Finish(node, anchor);
    }
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (error_) return;
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) {
      Fail(mark, "an alias cannot stand inside what it names");
      return;
    }
    Attach(known->second, mark);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kSequence);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    YamlNode* node;
    YAML::anchor_t anchor;
    const YamlNode* key = nullptr;  // A map's key that waits for its value.
  };

  YamlMark At(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  void Fail(const YAML::Mark& mark, std::string message) {
    if (!error_) error_ = YamlSyntaxError{At(mark), std::move(message)};
  }

  // "?" is a plain scalar or container, "!" a quoted one.
  void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      Fail(mark, "tags such as `!x` have no meaning here");
  }

  YamlNode* Begin(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode::Kind kind) {
    if (error_) return nullptr;
    if (static_cast<int64_t>(tree_.nodes_.size()) >= YamlTree::kMaxNodes) {
      Fail(mark, TooLarge());
      return nullptr;
    }
    YamlNode& node = tree_.nodes_.emplace_back();
    node.kind = kind;
    node.anchored = anchor != 0;
    node.mark = At(mark);
    return &node;
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlNode::Kind kind) {
    YamlNode* node = Begin(mark, anchor, kind);
    if (node == nullptr) return;
    RefuseTag(mark, tag);
    if (stack_.size() >= kMaxDepth) Fail(mark, "nested deeper than " + std::to_string(kMaxDepth));
    stack_.push_back({node, anchor});
  }

  void Close() {
    if (error_) return;
    const Frame frame = stack_.back();
    stack_.pop_back();
    Finish(frame.node, frame.anchor);
  }

  void Finish(YamlNode* node, YAML::anchor_t anchor) {
    if (error_) return;
    if (anchor != 0) anchors_[anchor] = node;
    YAML::Mark mark;
    mark.line = node->mark.line - 1;
    mark.column = node->mark.column - 1;
    Attach(node, mark);
  }

  void Attach(const YamlNode* node, const YAML::Mark& mark) {
    if (stack_.empty()) {
      tree_.root_ = node;
      return;
    }
    Frame& frame = stack_.back();
    frame.node->size += node->size;
    if (frame.node->size > YamlTree::kMaxNodes) {
      Fail(mark, TooLarge());
      return;
    }
    if (frame.node->kind == YamlNode::Kind::kSequence) {
      frame.node->items.push_back(node);
    } else if (frame.key == nullptr) {
      frame.key = node;
    } else {
      frame.node->entries.push_back({frame.key, node});
      frame.key = nullptr;
    }
  }

  static std::string TooLarge() {
    return "more than " + std::to_string(YamlTree::kMaxNodes) +
           " values, aliases written out; split the configuration or use fewer aliases";
  }

  YamlTree& tree_;
  const int file_;
  int documents_ = 0;
  YamlMark document_mark_;
  std::vector<Frame> stack_;
  std::unordered_map<YAML::anchor_t, const YamlNode*> anchors_;
  std::optional<YamlSyntaxError> error_;
};

// The column of the first tab before the line's text, list dashes included; 0: there is none.
static int TabInIndentation(std::string_view text, int line) {
  size_t begin = 0;
  for (int i = 1; i < line && begin != std::string_view::npos; ++i) {
    begin = text.find('\n', begin);
    if (begin != std::string_view::npos) ++begin;
  }
  if (begin == std::string_view::npos) return 0;
  const std::string_view rest = text.substr(begin);
  const std::string_view indentation = rest.substr(0, rest.find_first_not_of(" \t-"));
  const size_t tab = indentation.find('\t');
  return tab == std::string_view::npos ? 0 : static_cast<int>(tab) + 1;
}

std::expected<YamlTree, YamlSyntaxError> ParseYaml(const std::string& text, int file) {
  if (text.size() > YamlTree::kMaxTextBytes) {
    return std::unexpected(YamlSyntaxError{
        {file, 1, 1},
        "larger than " + std::to_string(YamlTree::kMaxTextBytes >> 20) + " MiB; use `include`"});
  }
  if (const size_t bad = FindMalformedUtf8(text); bad != std::string_view::npos) {
    return std::unexpected(YamlSyntaxError{MarkAt(text, bad, file), "not UTF-8 text"});
  }
  YamlTree tree;
  YamlTreeBuilder builder(tree, file);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (builder.documents() < 2 && !builder.error() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    const int line = e.mark.line + 1;
    if (const int column = TabInIndentation(text, line); column > 0) {
      return std::unexpected(YamlSyntaxError{
          {file, line, column}, "not valid YAML: a tab; lines are indented with spaces only"});
    }
    return std::unexpected(
        YamlSyntaxError{{file, line, e.mark.column + 1}, "not valid YAML: " + e.msg});
  }
  if (builder.error()) return std::unexpected(*builder.error());
  if (builder.documents() > 1) {
    return std::unexpected(
        YamlSyntaxError{builder.document_mark(), "a second document; one file holds one"});
  }
  if (tree.root_ == nullptr) {
    YamlNode& empty = tree.nodes_.emplace_back();
    empty.mark = {file, 1, 1};
    tree.root_ = &empty;
  }
  return tree;
}

}  // namespace weir::policy
