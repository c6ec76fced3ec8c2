// The scripts by which the steps of lease_counter.h and of NodeRegistry run on Redis or Valkey, and
// the values that go in and come out. One call carries many items, each with a key of its own; all
// keys of a call must lie in one hash slot (a tag in braces).
//
//   const LeaseItem item = EncodeRefill(terms, windows, request);
//   RunScript(kLeaseScript.sha1, kLeaseScript.text, keys, items) -> reply, a string
//   std::optional<Grant> grant = DecodeGrant(ReplyAt(reply.text, i));
//
// The clock is the server's; a key's expiry is written together with its state. A decoder says
// nothing (nullopt) to a reply of the wrong size.
//
// Thread safety: pure functions. Nothing allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "store/lease/lease_counter.h"

namespace weir::store::lease {

struct Script {
  std::string_view text;
  std::string_view sha1;  // 40 hex digits of the text.
};
// KEYS: the lease states. ARGV: one LeaseItem for each. Reply: kLeaseReplyBytes for each, joined.
extern const Script kLeaseScript;
// KEYS: the set of nodes. ARGV: the node's id, its expiry in µs, "1" if it leaves or else "0".
// Reply: the number of nodes, an integer; 0 after the last one has left.
extern const Script kNodeHeartbeatScript;

inline constexpr size_t kLeaseReplyBytes = 80;
using LeaseItem = std::array<char, 144>;  // Packed doubles.
inline std::string_view View(const LeaseItem& item) { return {item.data(), item.size()}; }

LeaseItem EncodeRefill(const LeaseTerms& terms, const Windows& windows,
                       const RefillRequest& request);
LeaseItem EncodeGiveBack(const LeaseTerms& terms, const Windows& windows,
                         const GiveBackRequest& request);
LeaseItem EncodeTake(const LeaseTerms& terms, const Windows& windows, int64_t cost);
LeaseItem EncodePeek(const LeaseTerms& terms, const Windows& windows, int64_t cost);
LeaseItem EncodePutBack(const LeaseTerms& terms, const Windows& windows, core::Receipt receipt,
                        int64_t units);
LeaseItem EncodePost(const LeaseTerms& terms, const Windows& windows, int64_t units);
// Forgets the counter, leases and debts included. What nodes hold of it they may spend until they
// speak to the store again.
LeaseItem EncodeReset(const LeaseTerms& terms);

// The reply to item `i`; empty when the reply is too short.
std::string_view ReplyAt(std::string_view reply, size_t i);
std::optional<Grant> DecodeGrant(std::string_view reply);
std::optional<TakeReply> DecodeTake(std::string_view reply);
// Of GiveBack, PutBack, Post and Reset.
std::optional<bool> DecodeDone(std::string_view reply);

}  // namespace weir::store::lease
