#include "policy/path_pattern.h"

#include <algorithm>
#include <optional>

namespace weir::policy {
namespace {

constexpr std::string_view kAnySegment = "{}";

std::string_view WithoutTrailingSlash(std::string_view path) {
  if (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

Error Wrong(std::string_view text, const std::string& what) {
  return Error{ErrorCode::kInvalidArgument, "path `" + std::string(text) + "`: " + what};
}

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Calls are matched by their canonical path, so a literal that is written otherwise matches none.
std::optional<Error> NotCanonical(std::string_view text, std::string_view segment) {
  for (size_t i = 0; i < segment.size(); ++i) {
    const char c = segment[i];
    if (IsUnreserved(c) || std::string_view("!$&'()+,;=:@").find(c) != std::string_view::npos) {
      continue;
    }
    if (c != '%') return Wrong(text, "`" + std::string(1, c) + "` must be percent-encoded");
    const int high = segment.size() - i > 2 ? HexDigit(segment[i + 1]) : -1;
    const int low = segment.size() - i > 2 ? HexDigit(segment[i + 2]) : -1;
    if (high < 0 || low < 0) return Wrong(text, "write `%` with two upper-case hex digits");
    const char decoded = static_cast<char>(high * 16 + low);
    if (IsUnreserved(decoded)) {
      return Wrong(text, "write `" + std::string(1, decoded) + "`, not its escape");
    }
    i += 2;
  }
  return std::nullopt;
}

// Reads one segment of a pattern into its stored form.
Result<std::string> ParseSegment(std::string_view text, std::string_view segment) {
  if (segment.empty()) return std::unexpected(Wrong(text, "`//` matches no canonical path"));
  if (segment == "." || segment == "..") {
    return std::unexpected(Wrong(text, "dot segments match no canonical path"));
  }
  if (segment.front() == '{' && segment.back() == '}') {
    const std::string_view name = segment.substr(1, segment.size() - 2);
    if (name.empty() || name.find_first_of("{}*") != std::string_view::npos) {
      return std::unexpected(Wrong(text, "name the segment between the braces, as in `{id}`"));
    }
    return std::string(kAnySegment);
  }
  if (segment.find_first_of("{}") != std::string_view::npos) {
    return std::unexpected(Wrong(text, "braces stand for one whole segment, as in `/users/{id}`"));
  }
  if (segment.find('*') != std::string_view::npos) {
    return std::unexpected(
        Wrong(text, "`*` may stand at the end only; `{name}` stands for one segment"));
  }
  if (auto error = NotCanonical(text, segment)) return std::unexpected(*std::move(error));
  return std::string(segment);
}

}  // namespace

Result<PathPattern> ParsePathPattern(std::string_view text) {
  PathPattern pattern;
  pattern.spelling_ = text;
  if (!text.starts_with('/')) return std::unexpected(Wrong(text, "a path begins with `/`"));
  if (text.find_first_of("?# \t\r\n") != std::string_view::npos) {
    return std::unexpected(Wrong(text, "a pattern holds no query, fragment or blank"));
  }
  std::string_view rest = text;
  if (rest.ends_with("/*")) {
    pattern.tail_ = PathPattern::Tail::kBelow;
    rest.remove_suffix(2);
  } else if (rest.ends_with('*')) {
    pattern.tail_ = PathPattern::Tail::kPrefix;
    rest.remove_suffix(1);
  } else {
    rest = WithoutTrailingSlash(rest);
  }
  pattern.literal_ = rest;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view segment = rest.substr(0, rest.find('/'));
    auto parsed = ParseSegment(text, segment);
    if (!parsed) return std::unexpected(parsed.error());
    if (*parsed == kAnySegment) pattern.has_wildcard_segment_ = true;
    rest.remove_prefix(segment.size());
    if (rest.empty() && pattern.tail_ == PathPattern::Tail::kPrefix && *parsed == kAnySegment) {
      return std::unexpected(Wrong(text, "a segment `{name}` cannot be continued by `*`"));
    }
    pattern.segments_.push_back(std::move(*parsed));
  }
  return pattern;
}

size_t PathPattern::Consume(std::string_view path) const {
  if (!has_wildcard_segment_) {
    return path.starts_with(literal_) ? literal_.size() : std::string_view::npos;
  }
  size_t position = 0;
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (position == path.size() || path[position] != '/') return std::string_view::npos;
    const size_t begin = position + 1;
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view segment = path.substr(begin, end - begin);
    position = end;
    if (segments_[i] == kAnySegment) {
      if (segment.empty()) return std::string_view::npos;
    } else if (tail_ == Tail::kPrefix && i + 1 == segments_.size()) {
      if (!segment.starts_with(segments_[i])) return std::string_view::npos;
      position = begin + segments_[i].size();
    } else if (segment != segments_[i]) {
      return std::string_view::npos;
    }
  }
  return position;
}

bool PathPattern::Matches(std::string_view path) const {
  if (!path.starts_with('/')) return false;
  path = WithoutTrailingSlash(path);
  const size_t consumed = Consume(path);
  if (consumed == std::string_view::npos) return false;
  switch (tail_) {
    case Tail::kExact:
      return consumed == path.size();
    case Tail::kBelow:
      return consumed == path.size() || path[consumed] == '/';
    case Tail::kPrefix:
      return true;
  }
  return false;
}

size_t PathPattern::MatchedPrefix(std::string_view path) const {
  return Consume(WithoutTrailingSlash(path));
}

std::weak_ordering PathPattern::ByPrecedence(const PathPattern& a, const PathPattern& b) {
  const auto is_prefix = [](const PathPattern& p) { return p.tail_ != Tail::kExact; };
  if (is_prefix(a) != is_prefix(b)) return is_prefix(a) <=> is_prefix(b);
  if (a.segments_.size() != b.segments_.size()) return b.segments_.size() <=> a.segments_.size();
  for (size_t i = 0; i < a.segments_.size(); ++i) {
    const bool a_is_any = a.segments_[i] == kAnySegment;
    const bool b_is_any = b.segments_[i] == kAnySegment;
    if (a_is_any != b_is_any) return a_is_any <=> b_is_any;
  }
  if (a.tail_ != b.tail_) return a.tail_ <=> b.tail_;
  // Two patterns that are alike so far and match one path differ only in how much of the last
  // segment they spell out.
  if (a.tail_ == Tail::kPrefix && !a.segments_.empty()) {
    return b.segments_.back().size() <=> a.segments_.back().size();
  }
  return std::weak_ordering::equivalent;
}

}  // namespace weir::policy
