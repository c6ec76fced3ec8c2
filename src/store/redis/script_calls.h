// What Weir asks of a Redis or Valkey server: many decisions in one script call, or many settles,
// renewals and resets; and what the server's answers mean. Pure: no sockets, no clock.
//
//   DecideCall call("weir:1:", unix_now_ns);
//   call.Add(charges, tags, Mode::kCharge);                    // Once for each decision.
//   ScriptCall script = call.Build();                          // Send as EVALSHA.
//   Result<DecideReply> reply = DecideReply::Parse(value);
//   Result<bool> admitted = reply->Next(charges, outcomes);    // In the order of Add.
//
// All keys of a call must share a hash slot: callers put together what has one slot by TagKey
// (message.h). The server's clock alone counts. Meters are checked with CheckMeter when a policy is
// read.
//
// Thread safety: none; each object has one owner at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/message.h"
#include "store/shared_store.h"
#include "store/store.h"
#include "weir/result.h"
#include "wire/resp/value.h"

namespace weir::store::redis {

// Whether the scripts count such a limit to the unit. kInvalidArgument names the field: windows
// need whole microseconds, a sliding window at most kLogUnitsMax units. Ask for every limit of a
// policy; a meter that fails here is denied.
Result<void> CheckMeter(const core::MeterSpec& spec);

// A sliding window's log is rewritten by every charge: 14 bytes for each instant with a charge.
inline constexpr int64_t kLogUnitsMax = 100'000;

// The arguments of one EVALSHA. Views into the object that built it and into static memory.
struct ScriptCall {
  std::string_view sha1;
  std::string_view text;
  std::vector<std::string_view> keys;
  std::vector<std::string_view> args;
};

class DecideCall {
 public:
  static constexpr size_t kChargesMax = 4096;  // Of one call, all decisions together.

  // `unix_ns`: about now, for the bounds of calendar windows alone. 0: not known; then a call with
  // calendar windows comes back stale and has to be sent again with the server's time.
  explicit DecideCall(std::string_view prefix, int64_t unix_ns = 0);

  // One decision, all or nothing. REQUIRES: tags.size() == charges.size() > 0; keys differ among
  // the charges; kChargesMax is kept; the meters outlive the call.
  void Add(std::span<const Charge> charges, std::span<const uint64_t> tags, Mode mode);

  // After the last Add. The views are valid until the call is changed or destroyed.
  ScriptCall Build();

  size_t charges() const { return charges_; }

 private:
  KeyList keys_;
  MeterList meters_;
  Message decisions_;
  Message argument_;
  size_t numbers_ = 0;
  size_t charges_ = 0;
};

class DecideReply {
 public:
  // kInternal: not what the script answers.
  static Result<DecideReply> Parse(const resp::Value& reply);

  // Nothing was decided, since no calendar window that was sent holds at the server's time: build
  // the same call with server_unix_ns() and send it again.
  bool stale() const { return stale_; }
  int64_t server_unix_ns() const { return now_us_ * 1000; }

  // The next decision's outcomes: true when it was admitted (for a peek: would be). REQUIRES: the
  // charges of the decision as they were added; not stale.
  Result<bool> Next(std::span<const Charge> charges, std::span<Outcome> outcomes);

 private:
  std::string text_;
  size_t at_ = 0;
  int64_t now_us_ = 0;
  bool stale_ = false;
};

// Settles, renewals and resets, carried out in order.
class SettleCall {
 public:
  // `id`, drawn at random: the server answers a repeat of the call within kRememberedNs as it
  // answered the first, and carries it out once. 0: not remembered.
  SettleCall(std::string_view prefix, uint64_t id, int64_t unix_ns = 0);
  static constexpr int64_t kRememberedNs = 300'000'000'000;

  // As MemoryStore::Settle: replaces the reserved cost by the actual one; ends a parallel lease.
  void Settle(const SharedCharge& charge);
  // Prolongs a parallel lease to `ttl_ns` from the server's now.
  void Renew(const SharedCharge& charge, int64_t ttl_ns);
  // Forgets the counter.
  void Reset(const SharedCharge& charge);

  // REQUIRES: something was added.
  ScriptCall Build();

 private:
  void Add(int op, const SharedCharge& charge, int64_t reserved, int64_t actual);

  const std::string prefix_;
  const uint64_t id_;
  uint64_t first_tag_ = 0;
  std::string marker_;
  KeyList keys_;
  MeterList meters_;
  Message items_;
  Message argument_;
  size_t numbers_ = 0;
};

struct SettleReply {
  static Result<SettleReply> Parse(const resp::Value& reply);

  bool stale = false;  // As of DecideReply: nothing was done.
  int64_t server_unix_ns = 0;
  std::vector<bool> done;  // Of each item, as MemoryStore's answer: false: nothing to change.
};

}  // namespace weir::store::redis
