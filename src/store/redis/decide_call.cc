#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "core/int128.h"
#include "store/redis/script_calls.h"
#include "store/redis/scripts.h"

namespace weir::store::redis {
namespace {

// The lease's id and time to live as the scripts keep them, 8 and 7 bytes.
std::array<char, 15> LeaseWords(const Charge& charge) {
  std::array<char, 15> words{};
  const auto ttl_us = static_cast<uint64_t>(core::CeilDiv64(charge.lease_ttl_ns, 1000));
  for (size_t i = 0; i < 8; ++i) words[i] = static_cast<char>(charge.lease_id >> (56 - 8 * i));
  for (size_t i = 0; i < 7; ++i) words[8 + i] = static_cast<char>(ttl_us >> (48 - 8 * i));
  return words;
}

std::unexpected<Error> NotAnAnswer() {
  return MakeError(ErrorCode::kInternal, "the store's answer is not one of Weir's scripts'");
}

// What became of a charge, as decide.lua says it.
constexpr int64_t kDenied = 0;
constexpr int64_t kAllowed = 1;
constexpr int64_t kCharged = 2;
constexpr int64_t kChargedWide = 3;
constexpr int64_t kMarked = 2;  // Added to the two above.

// Microseconds of an answer, where -1 stays "never".
int64_t WaitNs(int64_t us) { return us < 0 ? core::kNever : us * 1000; }

}  // namespace

Result<void> CheckMeter(const core::MeterSpec& spec) {
  if (spec.algorithm == Algorithm::kSlidingWindow && spec.rate.units > kLogUnitsMax) {
    return InvalidArgument(fmt::format(
        "rate.units: on a shared store, sliding_window is capped at {}; use token_bucket or "
        "sliding_counter for {}",
        kLogUnitsMax, spec.rate.units));
  }
  if (CodeOf(spec)) return {};
  return InvalidArgument(
      "rate.period: on a shared store, whose clock counts microseconds, it must be a whole number "
      "of them");
}

DecideCall::DecideCall(std::string_view prefix, int64_t unix_ns)
    : keys_(prefix), meters_(unix_ns) {}

void DecideCall::Add(std::span<const Charge> charges, std::span<const uint64_t> tags, Mode mode) {
  assert(charges.size() == tags.size() && !charges.empty());
  const auto count = static_cast<int64_t>(charges.size());
  decisions_.Number(mode == Mode::kPeek ? -count : count);
  for (size_t i = 0; i < charges.size(); ++i) {
    const Charge& charge = charges[i];
    const size_t meter = meters_.Add(*charge.meter);
    decisions_.Number(static_cast<int64_t>(keys_.Add(tags[i], charge.key)));
    decisions_.Number(charge.enforced ? static_cast<int64_t>(meter) : -static_cast<int64_t>(meter));
    decisions_.Number(charge.cost);
    const MeterCode& code = meters_.code(meter);
    if (code.form == ScriptForm::kWindow) {
      decisions_.Number(WindowOffsetUs(code.a, charge.key));
    } else if (code.form != ScriptForm::kParallel) {
      decisions_.Number(0);
    } else if (charge.lease_id == 0) {
      decisions_.Bytes({});
    } else {
      const std::array<char, 15> words = LeaseWords(charge);
      decisions_.Bytes({words.data(), words.size()});
    }
  }
  numbers_ += 1 + 4 * charges.size();
  charges_ += charges.size();
}

ScriptCall DecideCall::Build() {
  argument_.Clear();
  argument_.Array(1 + numbers_);
  meters_.AppendTo(argument_);
  argument_.Raw(decisions_);
  return {kDecideScript.sha1, kDecideScript.text, keys_.Views(), {argument_.text()}};
}

Result<DecideReply> DecideReply::Parse(const resp::Value& reply) {
  if (!reply.IsString()) return NotAnAnswer();
  DecideReply parsed;
  parsed.text_ = reply.text;
  if (!ReadArray(parsed.text_, parsed.at_)) return NotAnAnswer();
  const std::optional<int64_t> now_us = ReadNumber(parsed.text_, parsed.at_);
  if (!now_us) return NotAnAnswer();
  parsed.stale_ = *now_us < 0;
  parsed.now_us_ = parsed.stale_ ? -*now_us : *now_us;
  return parsed;
}

Result<bool> DecideReply::Next(std::span<const Charge> charges, std::span<Outcome> outcomes) {
  bool admitted = true;
  for (size_t i = 0; i < charges.size(); ++i) {
    const Charge& charge = charges[i];
    const std::optional<int64_t> kind = ReadNumber(text_, at_);
    const std::optional<int64_t> remaining = ReadNumber(text_, at_);
    const std::optional<int64_t> reset_us = ReadNumber(text_, at_);
    if (!kind || *kind < 0 || *kind > kChargedWide + kMarked || !remaining || !reset_us)
      return NotAnAnswer();
    Outcome outcome;
    outcome.step = {
        .allowed = *kind > 0, .remaining = *remaining, .reset_after_ns = WaitNs(*reset_us)};
    outcome.charged = *kind >= kCharged;
    if (*kind != kAllowed) {
      const std::optional<int64_t> number = ReadNumber(text_, at_);
      if (!number) return NotAnAnswer();
      if (*kind == kDenied) outcome.step.retry_after_ns = WaitNs(*number);
      if (outcome.charged) outcome.receipt = {*number, 1, now_us_ * 1000, 0};
    }
    if (outcome.charged && charge.meter->form() == core::Form::kParallel) {
      outcome.receipt = {static_cast<int64_t>(charge.lease_id), 1, 0};
    } else if (*kind == kChargedWide || *kind == kChargedWide + kMarked) {
      const std::optional<int64_t> part = ReadNumber(text_, at_);
      if (!part) return NotAnAnswer();
      outcome.receipt.b = *part;
    }
    if (*kind >= kCharged + kMarked) {
      const std::optional<int64_t> mark = ReadNumber(text_, at_);
      if (!mark) return NotAnAnswer();
      outcome.receipt.mark = *mark;
    }
    admitted = admitted && (outcome.step.allowed || !charge.enforced);
    outcomes[i] = outcome;
  }
  return admitted;
}

}  // namespace weir::store::redis
