#include "answers/limit_headers.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "core/int128.h"
#include "core/step.h"
#include "wire/durations.h"
#include "wire/structured_fields.h"

namespace weir::answers {
namespace {

using decide::LimitVerdict;
using decide::Verdict;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kMillisecondNs = 1'000'000;
constexpr int64_t kPatienceNs =
    60 * kSecondNs;  // SDKs honour announced waits up to a minute, then guess shorter ones.

int64_t SecondsUp(int64_t ns) { return core::CeilDiv64(ns, kSecondNs); }

void Line(wire::Buffer& out, std::string_view name_and_colon, int64_t value) {
  out.Append(name_and_colon);
  out.AppendDecimal(value);
  out.Append("\r\n");
}

bool InHeaders(const LimitVerdict& limit) { return !limit.shadow; }

// A limit on what is under way at once has no reset; the moment to ask again stands in for it.
int64_t ResetAfterNs(const LimitVerdict& limit) {
  return limit.reset_after_ns != core::kNever ? limit.reset_after_ns
                                              : std::max<int64_t>(limit.retry_after_ns, 0);
}

void AppendTriple(const LimitVerdict& limit, bool unix_seconds, int64_t wall_ns,
                  wire::Buffer& out) {
  Line(out, "X-RateLimit-Limit: ", limit.quota);
  Line(out, "X-RateLimit-Remaining: ", limit.remaining);
  Line(out, "X-RateLimit-Reset: ", SecondsUp(ResetAfterNs(limit) + (unix_seconds ? wall_ns : 0)));
}

std::string_view QuotaUnit(Unit unit) { return unit == Unit::kUsd ? "usd_micros" : UnitName(unit); }

// One member for each limit: its name, and what `append_parameters` writes behind it.
template <typename AppendParameters>
void AppendList(const Verdict& verdict, std::string_view name_and_colon, wire::Buffer& out,
                AppendParameters&& append_parameters) {
  std::string_view front = name_and_colon;
  for (const LimitVerdict& limit : verdict.limits) {
    if (!InHeaders(limit)) continue;
    out.Append(front);
    front = ", ";
    wire::AppendStructuredString(out, limit.name);
    append_parameters(limit);
  }
  out.Append("\r\n");
}

void AppendPolicyList(const Verdict& verdict, wire::Buffer& out) {
  AppendList(verdict, "RateLimit-Policy: ", out, [&](const LimitVerdict& limit) {
    out.Append(";q=");
    wire::AppendStructuredInteger(out, limit.quota);
    if (limit.unit != Unit::kRequests) {
      out.Append(";qu=\"");
      out.Append(QuotaUnit(limit.unit));
      out.Append('"');
    }
    if (limit.unit == Unit::kParallel) return;  // No window.
    out.Append(";w=");
    wire::AppendStructuredInteger(out, limit.window_s);
  });
}

void AppendStandingList(const Verdict& verdict, int64_t added_ns, wire::Buffer& out) {
  AppendList(verdict, "RateLimit: ", out, [&](const LimitVerdict& limit) {
    out.Append(";r=");
    wire::AppendStructuredInteger(out, limit.remaining);
    int64_t after_ns = limit.next_unit_after_ns;
    if (!limit.allowed) {
      if (limit.retry_after_ns == core::kNever) return;
      after_ns = limit.retry_after_ns + added_ns;
    } else if (limit.unit == Unit::kParallel) {
      return;
    }
    out.Append(";t=");
    wire::AppendStructuredInteger(out, std::max<int64_t>(SecondsUp(after_ns), 1));
  });
}

// Whether `a` has a smaller share left than `b`.
bool LessLeft(const LimitVerdict& a, const LimitVerdict& b) {
  return core::Int128{a.remaining} * b.quota < core::Int128{b.remaining} * a.quota;
}

// What X-RateLimit-* shows: the denying limit, or else the one with the least share left. Calls
// under way fill no quota and have no reset, so while a call is allowed they are shown only where
// nothing else limits it.
const LimitVerdict& ShownBy(const Verdict& verdict) {
  const LimitVerdict* shown = verdict.binding;
  if (!shown->allowed || shown->unit != Unit::kParallel) return *shown;
  for (const LimitVerdict& limit : verdict.limits) {
    if (!InHeaders(limit) || limit.unit == Unit::kParallel) continue;
    if (shown->unit == Unit::kParallel || LessLeft(limit, *shown)) shown = &limit;
  }
  return *shown;
}

// Of the limits on this unit, the one that denies with the longest wait, else the one with the
// least share left.
const LimitVerdict* TightestOf(const Verdict& verdict, Unit unit) {
  const LimitVerdict* tightest = nullptr;
  for (const LimitVerdict& limit : verdict.limits) {
    if (!InHeaders(limit) || limit.unit != unit) continue;
    if (&limit == verdict.binding) return &limit;
    if (tightest == nullptr || (tightest->allowed && !limit.allowed)) {
      tightest = &limit;
    } else if (tightest->allowed == limit.allowed && LessLeft(limit, *tightest)) {
      tightest = &limit;
    }
  }
  return tightest;
}

void AppendOpenAiTriple(const LimitVerdict& limit, std::string_view unit, wire::Buffer& out) {
  const auto field = [&](std::string_view front) {
    out.Append(front);
    out.Append(unit);
    out.Append(": ");
  };
  field("x-ratelimit-limit-");
  out.AppendDecimal(limit.quota);
  field("\r\nx-ratelimit-remaining-");
  out.AppendDecimal(limit.remaining);
  field("\r\nx-ratelimit-reset-");
  const int64_t reset_ms = core::CeilDiv64(ResetAfterNs(limit), kMillisecondNs);
  wire::AppendDuration(out, std::chrono::milliseconds(reset_ms));
  out.Append("\r\n");
}

void AppendRetry(const RetryAdvice& advice, wire::Buffer& out) {
  if (advice.helps) {
    Line(out, "Retry-After: ", advice.seconds);
    Line(out, "retry-after-ms: ", advice.milliseconds);
  }
  if (advice.discourages) out.Append("x-should-retry: false\r\n");
}

}  // namespace

RetryAdvice AdviseRetry(const Verdict& verdict, const policy::AnswersConfig& config,
                        uint64_t random) {
  RetryAdvice advice{.denied = !verdict.allowed};
  if (verdict.allowed) return advice;
  const bool money_spent = verdict.binding != nullptr && verdict.binding->unit == Unit::kUsd;
  advice.discourages =
      money_spent || verdict.retry_after_ns == core::kNever || verdict.retry_after_ns > kPatienceNs;
  if (verdict.retry_after_ns == core::kNever) return advice;
  const uint64_t jitter_ns = static_cast<uint64_t>(config.retry_jitter.count());
  if (jitter_ns > 0) {  // Uniform over [0, jitter], by the high half of a product.
    advice.added_ns = static_cast<int64_t>((core::Uint128{random} * (jitter_ns + 1)) >> 64);
  }
  const int64_t wait_ns = verdict.retry_after_ns + advice.added_ns;
  advice.helps = true;
  advice.seconds = std::max<int64_t>(SecondsUp(wait_ns), 1);
  advice.milliseconds = std::max<int64_t>(core::CeilDiv64(wait_ns, kMillisecondNs), 1);
  return advice;
}

void AppendLimitHeaders(const Verdict& verdict, const policy::AnswersConfig& config,
                        const RetryAdvice& advice, int64_t wall_ns, wire::Buffer& out) {
  if (config.retry_after && advice.denied) AppendRetry(advice, out);
  if (verdict.source == Source::kFallback) out.Append("X-Weir-Source: fallback\r\n");
  if (verdict.binding == nullptr) return;
  if (config.ratelimit) {
    AppendPolicyList(verdict, out);
    AppendStandingList(verdict, advice.added_ns, out);
  }
  if (config.x_ratelimit)
    AppendTriple(ShownBy(verdict), config.x_ratelimit_reset_unix, wall_ns, out);
  if (!config.openai) return;
  if (const LimitVerdict* requests = TightestOf(verdict, Unit::kRequests))
    AppendOpenAiTriple(*requests, "requests", out);
  if (const LimitVerdict* tokens = TightestOf(verdict, Unit::kTokens))
    AppendOpenAiTriple(*tokens, "tokens", out);
}

}  // namespace weir::answers
