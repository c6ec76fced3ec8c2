#include "policy/matcher.h"

#include <algorithm>

namespace weir::policy {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualsIgnoringCase(std::string_view value, std::string_view lower) {
  return std::ranges::equal(value, lower, [](char a, char b) { return Lower(a) == b; });
}

std::string LowerCase(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), Lower);
  return out;
}

// The text may be a range's, as of a grouped IPv6 client: its first address stands for it.
bool MatchesAddress(const Attributes& call, const base::IpRange& range) {
  if (const base::IpBits* bits = call.address()) return base::Contains(range, *bits);
  const std::string_view text = call.Get(kIpAttribute);
  const std::optional<base::IpBits> parsed = base::ParseIp(text.substr(0, text.find('/')));
  return parsed && base::Contains(range, *parsed);
}

Result<Pattern> ParseAddressPattern(std::string_view text) {
  Pattern pattern{.spelling = std::string(text)};
  if (text == "*") {
    pattern.kind = Pattern::Kind::kPrefix;
    return pattern;
  }
  if (text.ends_with('*')) {
    return InvalidArgument("`" + std::string(text) +
                           "`: addresses match by range, not by spelling; write a range such as "
                           "`10.0.0.0/8`");
  }
  auto range = base::ParseIpRange(text);
  if (!range) return std::unexpected(range.error());
  pattern.kind = Pattern::Kind::kCidr;
  pattern.range = *range;
  return pattern;
}

Result<Pattern> ParseHostPattern(std::string_view text) {
  Pattern pattern{.spelling = std::string(text)};
  if (text == "*") {
    pattern.kind = Pattern::Kind::kPrefix;
    return pattern;
  }
  std::string_view name = text;
  if (text.starts_with("*.")) {
    pattern.kind = Pattern::Kind::kHostSuffix;
    name.remove_prefix(1);
  }
  const bool bracketed = name.starts_with('[');
  if (name.size() <= 1 && pattern.kind == Pattern::Kind::kHostSuffix) name = {};
  if (name.empty() || name.find_first_of("*/ ") != std::string_view::npos ||
      (!bracketed && name.find(':') != std::string_view::npos)) {
    return InvalidArgument("host `" + std::string(text) +
                           "`: write a name without a port, or `*.example.com` for all below one");
  }
  pattern.text = LowerCase(name);
  return pattern;
}

Result<Pattern> ParseMethodPattern(std::string_view text) {
  const bool upper = std::ranges::all_of(
      text, [](char c) { return (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '*'; });
  if (text.empty() || !upper) {
    return InvalidArgument("method `" + std::string(text) +
                           "`: methods are upper-case words such as `POST`");
  }
  return Pattern{.text = std::string(text), .spelling = std::string(text)};
}

Result<Pattern> ParsePath(std::string_view text) {
  auto path = ParsePathPattern(text);
  if (!path) return std::unexpected(path.error());
  return Pattern{
      .kind = Pattern::Kind::kPath, .path = std::move(*path), .spelling = std::string(text)};
}

// A `*` at the end makes a prefix; elsewhere it is refused, since no one means it literally.
Result<Pattern> ParseTextPattern(std::string_view text) {
  Pattern pattern{.text = std::string(text), .spelling = std::string(text)};
  const size_t star = text.find('*');
  if (star == std::string_view::npos) return pattern;
  if (star + 1 != text.size()) {
    return InvalidArgument("`" + std::string(text) +
                           "`: `*` may stand at the end only, where it makes a prefix");
  }
  pattern.kind = Pattern::Kind::kPrefix;
  pattern.text.pop_back();
  return pattern;
}

bool IsMissing(const Attributes& call, int attribute) { return !call.Has(attribute); }

std::string ListPatterns(const Condition& condition) {
  std::string out;
  for (size_t i = 0; i < condition.patterns.size(); ++i) {
    if (i > 0) out += i + 1 == condition.patterns.size() ? " or " : ", ";
    const std::string& spelling = condition.patterns[i].spelling;
    out += spelling.empty() ? "(empty)" : spelling;
  }
  return out;
}

std::string ToString(const std::vector<Condition>& conditions, const AttributeTable& names) {
  std::string out;
  for (const Condition& condition : conditions) {
    if (!out.empty()) out += ", ";
    out += std::string(names.NameOf(condition.attribute)) + " " + ListPatterns(condition);
  }
  return out;
}

}  // namespace

Result<Pattern> ParsePattern(int attribute, std::string_view text) {
  switch (attribute) {
    case kIpAttribute:
      return ParseAddressPattern(text);
    case kHostAttribute:
      return ParseHostPattern(text);
    case kPathAttribute:
      return ParsePath(text);
    case kMethodAttribute: {
      auto pattern = ParseMethodPattern(text);
      return pattern ? ParseTextPattern(text) : pattern;
    }
    default:
      return ParseTextPattern(text);
  }
}

bool Pattern::Matches(const Attributes& call, int attribute) const {
  const std::string_view value = call.Get(attribute);
  switch (kind) {
    case Kind::kExact:
      return attribute == kHostAttribute ? EqualsIgnoringCase(value, text) : value == text;
    case Kind::kPrefix:
      return value.starts_with(text);
    case Kind::kCidr:
      return MatchesAddress(call, range);
    case Kind::kHostSuffix:
      return value.size() > text.size() &&
             EqualsIgnoringCase(value.substr(value.size() - text.size()), text);
    case Kind::kPath:
      return path.Matches(value);
  }
  return false;
}

bool Condition::Matches(const Attributes& call) const {
  for (const Pattern& pattern : patterns) {
    if (pattern.Matches(call, attribute)) return true;
  }
  return false;
}

void Matcher::Add(Condition condition) {
  named_mask_ |= uint32_t{1} << condition.attribute;
  conditions_.push_back(std::move(condition));
}

void Matcher::AddNegated(std::vector<Condition> group) {
  for (const Condition& condition : group) named_mask_ |= uint32_t{1} << condition.attribute;
  negated_.push_back(std::move(group));
}

bool Matcher::Matches(const Attributes& call) const {
  for (const Condition& condition : conditions_) {
    if (!condition.Matches(call)) return false;
  }
  for (const auto& group : negated_) {
    bool all = true;
    for (const Condition& condition : group) all = all && condition.Matches(call);
    if (all) return false;
  }
  return true;
}

bool Matcher::MatchesPresent(const Attributes& call) const {
  for (const Condition& condition : conditions_) {
    if (!IsMissing(call, condition.attribute) && !condition.Matches(call)) return false;
  }
  for (const auto& group : negated_) {
    bool all = true;
    for (const Condition& condition : group) {
      all = all && !IsMissing(call, condition.attribute) && condition.Matches(call);
    }
    if (all) return false;
  }
  return true;
}

std::optional<std::string> WhyNot(const Matcher& matcher, const Attributes& call,
                                  const AttributeTable& names) {
  for (const Condition& condition : matcher.conditions()) {
    if (condition.Matches(call)) continue;
    const std::string name(names.NameOf(condition.attribute));
    const std::string wanted = ListPatterns(condition);
    if (IsMissing(call, condition.attribute)) return name + " is missing, not " + wanted;
    return name + " is " + std::string(call.Get(condition.attribute)) + ", not " + wanted;
  }
  for (const auto& group : matcher.negated()) {
    if (std::ranges::all_of(group, [&](const Condition& c) { return c.Matches(call); })) {
      return "not: " + ToString(group, names) + " excludes it";
    }
  }
  return std::nullopt;
}

std::string ToString(const Matcher& matcher, const AttributeTable& names) {
  std::string out = ToString(matcher.conditions(), names);
  for (const auto& group : matcher.negated()) {
    if (!out.empty()) out += ", ";
    out += "not (" + ToString(group, names) + ")";
  }
  return out.empty() ? "every call" : out;
}

}  // namespace weir::policy
