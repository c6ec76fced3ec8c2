#include "identity/forwarded.h"

#include <optional>

namespace weir::identity {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t'; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

bool EqualsFor(std::string_view name) {
  return name.size() == 3 && (name[0] | 0x20) == 'f' && (name[1] | 0x20) == 'o' &&
         (name[2] | 0x20) == 'r';
}

// Follows the entries from the right for as long as they come from trusted proxies.
class Walk {
 public:
  Walk(IpAddress peer, const CidrSet& trusted) : trusted_(trusted), client_(peer) {}

  // Takes the next entry to the left. False: the walk is over.
  bool Take(std::string_view node) {
    const std::optional<IpAddress> address = IpAddress::ParseWithPort(node);
    if (!address) return false;
    client_ = *address;
    return ++hops_ < kMaxHops && trusted_.Contains(*address);
  }

  IpAddress client() const { return client_; }

 private:
  const CidrSet& trusted_;
  IpAddress client_;
  size_t hops_ = 0;
};

bool WalkForwardedFor(std::string_view line, Walk& walk) {
  while (!line.empty()) {
    const size_t comma = line.rfind(',');
    const std::string_view entry =
        Trim(comma == std::string_view::npos ? line : line.substr(comma + 1));
    // Empty list elements say nothing (RFC 9110, section 5.6.1).
    if (!entry.empty() && !walk.Take(entry)) return false;
    if (comma == std::string_view::npos) break;
    line = line.substr(0, comma);
  }
  return true;
}

// Reads one Forwarded line's elements left to right, since quoted strings can hold commas, and
// keeps the last kMaxHops `for` values; an element without one is kept as an empty value.
class ForwardedElements {
 public:
  // False when the line is not of RFC 7239's form.
  bool Read(std::string_view line) {
    rest_ = line;
    while (true) {
      SkipSpace();
      if (rest_.empty()) return true;
      if (rest_[0] == ',') {  // An empty list element.
        rest_.remove_prefix(1);
        continue;
      }
      std::string_view node;
      if (!TakeElement(node)) return false;
      nodes_[count_++ % kMaxHops] = node;
      if (rest_.empty()) return true;
      rest_.remove_prefix(1);  // The comma.
    }
  }

  size_t size() const { return count_ < kMaxHops ? count_ : kMaxHops; }
  std::string_view from_last(size_t i) const { return nodes_[(count_ - 1 - i) % kMaxHops]; }

 private:
  void SkipSpace() {
    while (!rest_.empty() && IsSpace(rest_[0])) rest_.remove_prefix(1);
  }

  // Up to the end or the comma behind the element.
  bool TakeElement(std::string_view& node) {
    bool seen_for = false;
    while (true) {
      SkipSpace();
      std::string_view name;
      std::string_view value;
      if (!TakePair(name, value)) return false;
      if (EqualsFor(name)) {
        if (seen_for) return false;  // "Each parameter MUST NOT occur more than once."
        seen_for = true;
        node = value;
      }
      SkipSpace();
      if (rest_.empty() || rest_[0] == ',') return true;
      if (rest_[0] != ';') return false;
      rest_.remove_prefix(1);
    }
  }

  bool TakePair(std::string_view& name, std::string_view& value) {
    const size_t equals = rest_.find_first_of("=,;\" \t");
    if (equals == 0 || equals == std::string_view::npos || rest_[equals] != '=') return false;
    name = rest_.substr(0, equals);
    rest_.remove_prefix(equals + 1);
    if (rest_.starts_with('"')) return TakeQuoted(value);
    const size_t end = rest_.find_first_of(",; \t\"");
    value = rest_.substr(0, end);
    rest_.remove_prefix(value.size());
    return !value.empty();
  }

  // A quoted string's inside. Escapes stay as they are: no address needs one, so such a value is no
  // address.
  bool TakeQuoted(std::string_view& value) {
    for (size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == '"') {
        value = rest_.substr(1, i - 1);
        rest_.remove_prefix(i + 1);
        return true;
      }
    }
    return false;
  }

  std::string_view rest_;
  std::array<std::string_view, kMaxHops> nodes_;
  size_t count_ = 0;
};

bool WalkForwarded(std::string_view line, Walk& walk) {
  ForwardedElements elements;
  if (!elements.Read(line)) return false;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!walk.Take(elements.from_last(i))) return false;
  }
  return true;
}

}  // namespace

IpAddress ClientAddress(IpAddress peer, const CidrSet& trusted, const ForwardedLines& lines) {
  if (trusted.empty() || !trusted.Contains(peer)) return peer;
  Walk walk(peer, trusted);
  if (lines.forwarded_for_count() > 0) {
    for (size_t i = 0; i < lines.forwarded_for_count(); ++i) {
      if (!WalkForwardedFor(lines.forwarded_for_from_last(i), walk)) break;
    }
  } else {
    for (size_t i = 0; i < lines.forwarded_count(); ++i) {
      if (!WalkForwarded(lines.forwarded_from_last(i), walk)) break;
    }
  }
  return walk.client();
}

}  // namespace weir::identity
