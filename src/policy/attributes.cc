#include "policy/attributes.h"

#include <algorithm>

#include "base/suggest.h"

namespace weir::policy {
namespace {

constexpr std::string_view kWellKnownNames[kWellKnownAttributes] = {
    "client", "ip", "method", "host", "path", "model", "plan"};
constexpr std::string_view kHeaderPrefix = "header.";
constexpr size_t kLongestName = 64;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// RFC 9110, section 5.6.2: a field name is a token.
bool IsTokenChar(char c) {
  return IsLetter(c) || IsDigit(c) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsFieldName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, IsTokenChar);
}

bool IsCustomName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && IsLetter(name.front()) &&
         std::ranges::all_of(
             name, [](char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '-'; });
}

std::string ToLower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// Names come from clients too: what is shown of them is bounded and printable.
std::string Shown(std::string_view name) {
  std::string out = "`";
  for (char c : name.substr(0, kLongestName)) out += c > 0x20 && c < 0x7f && c != '`' ? c : '?';
  return out + (name.size() > kLongestName ? "...`" : "`");
}

}  // namespace

AttributeTable::AttributeTable() : names_(std::begin(kWellKnownNames), std::end(kWellKnownNames)) {}

Result<int> AttributeTable::Add(std::string_view name) {
  const bool is_header = name.starts_with(kHeaderPrefix);
  std::string folded = is_header ? ToLower(name) : std::string(name);
  const auto known = std::ranges::find(names_, folded);
  if (known != names_.end()) {
    if (is_header) return static_cast<int>(known - names_.begin());
    return InvalidArgument("attribute " + Shown(name) + " is known already");
  }
  if (is_header ? !IsFieldName(folded.substr(kHeaderPrefix.size())) : !IsCustomName(folded)) {
    return InvalidArgument(
        is_header
            ? Shown(name) + " does not name a header; write it like `header.x-user-id`"
            : "an attribute's name is a letter, then letters, digits, `_` and `-`, at most 64 in "
              "all, not " +
                  Shown(name));
  }
  if (size() == kMaxAttributes) {
    return InvalidArgument("a policy can know at most " + std::to_string(kMaxAttributes) +
                           " attributes, headers among them; " + Shown(name) + " is one too many");
  }
  if (is_header) headers_.push_back({size(), folded.substr(kHeaderPrefix.size())});
  names_.push_back(std::move(folded));
  return size() - 1;
}

Result<int> AttributeTable::Find(std::string_view name) const {
  const auto known = std::ranges::find(names_, name);
  if (known != names_.end()) return static_cast<int>(known - names_.begin());
  if (name.starts_with(kHeaderPrefix) && IsFieldName(name.substr(kHeaderPrefix.size()))) {
    const auto folded = std::ranges::find(names_, ToLower(name));
    return folded == names_.end() ? kUnusedAttribute : static_cast<int>(folded - names_.begin());
  }
  const std::vector<std::string_view> views(names_.begin(), names_.end());
  return InvalidArgument("attribute " + Shown(name) + " is not declared" +
                         base::DidYouMean(name, views));
}

std::string_view LayerName(Layer layer) {
  switch (layer) {
    case Layer::kGlobal:
      return "global";
    case Layer::kIp:
      return "ip";
    case Layer::kClient:
      return "client";
    case Layer::kEndpoint:
      return "endpoint";
    case Layer::kModel:
      return "model";
  }
  return "global";
}

std::optional<Layer> ParseLayer(std::string_view name) {
  for (int i = 0; i < kLayerCount; ++i) {
    if (LayerName(static_cast<Layer>(i)) == name) return static_cast<Layer>(i);
  }
  return std::nullopt;
}

Layer LayerOf(int attribute_index) {
  switch (attribute_index) {
    case kIpAttribute:
      return Layer::kIp;
    case kMethodAttribute:
    case kHostAttribute:
    case kPathAttribute:
      return Layer::kEndpoint;
    case kModelAttribute:
      return Layer::kModel;
    default:
      return Layer::kClient;
  }
}

}  // namespace weir::policy
