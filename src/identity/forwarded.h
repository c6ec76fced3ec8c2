// Who called, seen from behind proxies: the socket's peer, or what trusted proxies say of theirs.
//
// The walk goes right to left, because each proxy appends: an entry counts only if the one to its
// right came from a trusted proxy. It ends at the first address outside the trusted ranges, or in
// front of an entry that is no address. So a client can write what it likes to the left; it never
// reaches what the nearest trusted proxy wrote.
//
// Thread safety: plain functions; nothing allocates.
//
//   ForwardedLines lines;
//   lines.AddForwardedFor("198.51.100.1, 203.0.113.7");   // in the order of the header lines
//   IpAddress client = ClientAddress(peer, trusted, lines);
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "identity/address.h"

namespace weir::identity {

// The X-Forwarded-For and Forwarded lines of one request, in order. Only the last kMaxLines of each
// are kept; nearer proxies write later lines.
class ForwardedLines {
 public:
  static constexpr size_t kMaxLines = 8;

  void AddForwardedFor(std::string_view value) { Add(forwarded_for_, forwarded_for_count_, value); }
  void AddForwarded(std::string_view value) { Add(forwarded_, forwarded_count_, value); }

  size_t forwarded_for_count() const { return Kept(forwarded_for_count_); }
  size_t forwarded_count() const { return Kept(forwarded_count_); }
  // The i-th line from the right: 0 is the last one.
  std::string_view forwarded_for_from_last(size_t i) const {
    return FromLast(forwarded_for_, forwarded_for_count_, i);
  }
  std::string_view forwarded_from_last(size_t i) const {
    return FromLast(forwarded_, forwarded_count_, i);
  }

 private:
  using Lines = std::array<std::string_view, kMaxLines>;
  static void Add(Lines& lines, size_t& count, std::string_view value) {
    lines[count++ % kMaxLines] = value;
  }
  static size_t Kept(size_t count) { return count < kMaxLines ? count : kMaxLines; }
  static std::string_view FromLast(const Lines& lines, size_t count, size_t i) {
    return lines[(count - 1 - i) % kMaxLines];
  }

  Lines forwarded_for_;
  Lines forwarded_;
  size_t forwarded_for_count_ = 0;
  size_t forwarded_count_ = 0;
};

// Entries beyond this many, counted from the right, are not walked.
inline constexpr size_t kMaxHops = 32;

// The client's address. An untrusted peer is the client, whatever the lines say. X-Forwarded-For is
// read when there is one, else Forwarded (RFC 7239): proxies that append to the former often pass
// the latter through unseen.
IpAddress ClientAddress(IpAddress peer, const CidrSet& trusted, const ForwardedLines& lines);

}  // namespace weir::identity
