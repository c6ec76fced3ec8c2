#include "store/lease/lease_script.h"

#include <bit>
#include <cstring>
#include <initializer_list>

namespace weir::store::lease {
namespace {

static_assert(std::endian::native == std::endian::little, "items are packed little-endian");

// As in lease.lua.
enum Operation : uint8_t { kRefill = 1, kGiveBack, kTake, kPeek, kPutBack, kPost, kReset };

LeaseItem Encode(Operation operation, const LeaseTerms& terms, const Windows& windows,
                 std::initializer_list<double> arguments) {
  const auto number = [](auto value) { return static_cast<double>(value); };
  const double flags = (terms.window ? 1 : 0) + (terms.calendar ? 2 : 0) + (terms.reserved ? 4 : 0);
  double values[18] = {number(operation),
                       flags,
                       number(terms.fence),
                       number(terms.burst),
                       number(terms.ticks_per_unit),
                       number(terms.ticks_per_us),
                       number(terms.period_us)};
  if (terms.calendar) {
    values[7] = number(windows.calendar[0].start_us);
    values[8] = number(windows.calendar[0].end_us);
    values[9] = number(windows.calendar[1].start_us);
    values[10] = number(windows.calendar[1].end_us);
  } else {
    values[7] = number(windows.offset_us);
  }
  double* next = values + 11;
  for (const double argument : arguments) *next++ = argument;
  LeaseItem item;
  static_assert(sizeof values == sizeof item);
  std::memcpy(item.data(), values, sizeof values);
  return item;
}

struct Reply {
  double values[10];
  int64_t At(size_t i) const { return static_cast<int64_t>(values[i]); }
};
static_assert(sizeof(Reply) == kLeaseReplyBytes);

std::optional<Reply> Unpack(std::string_view reply) {
  if (reply.size() != kLeaseReplyBytes) return std::nullopt;
  Reply unpacked;
  std::memcpy(&unpacked, reply.data(), sizeof unpacked);
  return unpacked;
}

double D(int64_t value) { return static_cast<double>(value); }

}  // namespace

LeaseItem EncodeRefill(const LeaseTerms& terms, const Windows& windows,
                       const RefillRequest& request) {
  return Encode(kRefill, terms, windows,
                {static_cast<double>(request.holder), D(request.number), D(request.since_us),
                 D(request.applied), D(request.left), D(request.want), D(request.term_us)});
}

LeaseItem EncodeGiveBack(const LeaseTerms& terms, const Windows& windows,
                         const GiveBackRequest& request) {
  return Encode(kGiveBack, terms, windows,
                {static_cast<double>(request.holder), D(request.number), D(request.since_us),
                 D(request.applied), D(request.left)});
}

LeaseItem EncodeTake(const LeaseTerms& terms, const Windows& windows, int64_t cost) {
  return Encode(kTake, terms, windows, {D(cost)});
}

LeaseItem EncodePeek(const LeaseTerms& terms, const Windows& windows, int64_t cost) {
  return Encode(kPeek, terms, windows, {D(cost)});
}

LeaseItem EncodePutBack(const LeaseTerms& terms, const Windows& windows, core::Receipt receipt,
                        int64_t units) {
  return Encode(kPutBack, terms, windows,
                {D(receipt.a), D(receipt.b), D(receipt.at_ns / 1000), D(units)});
}

LeaseItem EncodePost(const LeaseTerms& terms, const Windows& windows, int64_t units) {
  return Encode(kPost, terms, windows, {D(units)});
}

LeaseItem EncodeReset(const LeaseTerms& terms) { return Encode(kReset, terms, {}, {}); }

std::string_view ReplyAt(std::string_view reply, size_t i) {
  if (reply.size() < (i + 1) * kLeaseReplyBytes) return {};
  return reply.substr(i * kLeaseReplyBytes, kLeaseReplyBytes);
}

std::optional<Grant> DecodeGrant(std::string_view reply) {
  const std::optional<Reply> values = Unpack(reply);
  if (!values || values->At(0) < 0 || values->At(0) > 4) return std::nullopt;
  return Grant{.status = static_cast<GrantStatus>(values->At(0)),
               .number = values->At(1),
               .since_us = values->At(2),
               .units = values->At(3),
               .allotment = values->At(4),
               .lasts_us = values->At(5),
               .holders = values->At(6),
               .available = values->At(7),
               .reset_us = values->At(8),
               .retry_us = values->At(9)};
}

std::optional<TakeReply> DecodeTake(std::string_view reply) {
  const std::optional<Reply> values = Unpack(reply);
  if (!values) return std::nullopt;
  return TakeReply{.other_window = values->At(0) != 0,
                   .allowed = values->At(1) != 0,
                   .remaining = values->At(2),
                   .reset_us = values->At(3),
                   .retry_us = values->At(4),
                   .receipt = {values->At(5), values->At(6), values->At(7) * 1000}};
}

std::optional<bool> DecodeDone(std::string_view reply) {
  const std::optional<Reply> values = Unpack(reply);
  if (!values) return std::nullopt;
  return values->At(0) != 0;
}

}  // namespace weir::store::lease
