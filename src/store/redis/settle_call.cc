#include <algorithm>
#include <array>
#include <cassert>

#include "core/int128.h"
#include "store/redis/script_calls.h"
#include "store/redis/scripts.h"

namespace weir::store::redis {
namespace {

constexpr int kSettle = 0;
constexpr int kRenew = 1;
constexpr int kReset = 2;

std::array<char, 8> IdWord(int64_t id) {
  std::array<char, 8> word{};
  for (size_t i = 0; i < 8; ++i) {
    word[i] = static_cast<char>(static_cast<uint64_t>(id) >> (56 - 8 * i));
  }
  return word;
}

std::unexpected<Error> NotAnAnswer() {
  return MakeError(ErrorCode::kInternal, "the store's answer is not one of Weir's scripts'");
}

}  // namespace

SettleCall::SettleCall(std::string_view prefix, uint64_t id, int64_t unix_ns)
    : prefix_(prefix), id_(id), keys_(prefix), meters_(unix_ns) {}

void SettleCall::Add(int op, const SharedCharge& charge, int64_t reserved, int64_t actual) {
  if (numbers_ == 0) first_tag_ = charge.tag;
  const size_t meter = meters_.Add(*charge.meter);
  const MeterCode& code = meters_.code(meter);
  items_.Number(op);
  items_.Number(static_cast<int64_t>(keys_.Add(charge.tag, charge.key)));
  items_.Number(static_cast<int64_t>(meter));
  items_.Number(reserved);
  items_.Number(actual);
  const bool parallel = code.form == ScriptForm::kParallel;
  items_.Number(parallel ? 0 : charge.receipt.a);
  items_.Number(parallel ? 0 : charge.receipt.b);
  items_.Number(charge.receipt.at_ns / 1000);
  items_.Number(std::max<int64_t>(charge.receipt.mark, 0));
  if (parallel) {
    const std::array<char, 8> word = IdWord(charge.receipt.a);
    items_.Bytes({word.data(), word.size()});
  } else {
    items_.Number(code.form == ScriptForm::kWindow ? WindowOffsetUs(code.a, charge.key) : 0);
  }
  numbers_ += 10;
}

void SettleCall::Settle(const SharedCharge& charge) {
  Add(kSettle, charge, charge.reserved, charge.actual);
}

void SettleCall::Renew(const SharedCharge& charge, int64_t ttl_ns) {
  Add(kRenew, charge, core::CeilDiv64(ttl_ns, 1000), 0);
}

void SettleCall::Reset(const SharedCharge& charge) { Add(kReset, charge, 0, 0); }

ScriptCall SettleCall::Build() {
  assert(numbers_ > 0);
  ScriptCall call{kSettleScript.sha1, kSettleScript.text, keys_.Views(), {}};
  if (id_ != 0) {
    marker_ = CounterKey(prefix_, first_tag_, {.hi = 0, .lo = id_}) + ":settled";
    call.keys.push_back(marker_);
  }
  argument_.Clear();
  argument_.Array(3 + numbers_);
  meters_.AppendTo(argument_);
  argument_.Number(id_ != 0 ? static_cast<int64_t>(call.keys.size()) : 0);
  argument_.Number(kRememberedNs / 1'000'000);
  argument_.Raw(items_);
  call.args.push_back(argument_.text());
  return call;
}

Result<SettleReply> SettleReply::Parse(const resp::Value& reply) {
  if (!reply.IsString()) return NotAnAnswer();
  size_t at = 0;
  const std::optional<size_t> count = ReadArray(reply.text, at);
  const std::optional<int64_t> now_us = ReadNumber(reply.text, at);
  if (!count || !now_us) return NotAnAnswer();
  SettleReply parsed{.stale = *now_us < 0,
                     .server_unix_ns = (*now_us < 0 ? -*now_us : *now_us) * 1000};
  for (size_t i = 1; i < *count; ++i) {
    const std::optional<int64_t> done = ReadNumber(reply.text, at);
    if (!done) return NotAnAnswer();
    parsed.done.push_back(*done == 1);
  }
  return parsed;
}

}  // namespace weir::store::redis
