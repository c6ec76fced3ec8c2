#include "doors/rls/rate_limit_service.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "answers/limit_headers.h"
#include "answers/refusal.h"
#include "core/step.h"
#include "doors/jitter.h"

namespace weir::doors::rls {
namespace {

using weir::rls::Code;
using weir::rls::Unit;

constexpr int64_t kUnnamed = 0;

// A month is 30 days and a year 365, as in rates.
constexpr int64_t SecondsOf(Unit unit) {
  switch (unit) {
    case Unit::kSecond:
      return 1;
    case Unit::kMinute:
      return 60;
    case Unit::kHour:
      return 3600;
    case Unit::kDay:
      return 86'400;
    case Unit::kWeek:
      return 7 * 86'400;
    case Unit::kMonth:
      return 30 * 86'400;
    case Unit::kYear:
      return 365 * 86'400;
    case Unit::kUnknown:
      break;
  }
  return kUnnamed;
}

// The unit that lasts as long as the quota takes to come back. None but that would be true of
// "quota per unit": a minute's rate with a burst of a sixth of it has a window of ten seconds.
Unit UnitOf(int64_t window_s) {
  for (const Unit unit : {Unit::kSecond, Unit::kMinute, Unit::kHour, Unit::kDay, Unit::kWeek,
                          Unit::kMonth, Unit::kYear}) {
    if (SecondsOf(unit) == window_s) return unit;
  }
  return Unit::kUnknown;
}

uint32_t Narrow(int64_t value) {
  return static_cast<uint32_t>(std::clamp<int64_t>(value, 0, UINT32_MAX));
}

weir::rls::DescriptorStatus StatusOf(const decide::DescriptorStatus& status) {
  weir::rls::DescriptorStatus shown{.code = status.allowed ? Code::kOk : Code::kOverLimit};
  if (const decide::LimitVerdict* const limit = status.binding) {
    // A quota that the field cannot hold is left out, not cut short: the headers have it whole.
    if (limit->quota <= UINT32_MAX)
      shown.limit = {Narrow(limit->quota), UnitOf(limit->window_s), limit->name};
    shown.limit_remaining = Narrow(limit->remaining);
    if (limit->reset_after_ns != core::kNever)
      shown.until_reset_ns = std::max<int64_t>(limit->reset_after_ns, 0);
  } else if (status.unlimited) {
    shown.limit_remaining = weir::rls::kUnlimitedRemaining;
  }
  return shown;
}

}  // namespace

Result<decide::Descriptor> RateLimitService::Convert(const weir::rls::Descriptor& descriptor,
                                                     size_t index) const {
  const auto refuse = [index](std::string_view what) {
    return InvalidArgument("descriptors[" + std::to_string(index) + "]." + std::string(what));
  };
  if (descriptor.is_negative_hits)
    return refuse("is_negative_hits: what was charged is not given back by a later call");
  // Unset counts as 1; a descriptor's own 0 is a look.
  const uint64_t hits = descriptor.hits_addend.value_or(std::max(reader_.hits_addend(), 1u));
  if (hits > static_cast<uint64_t>(kMaxUnits))
    return refuse("hits_addend: must be at most 9007199254740992");
  decide::Descriptor converted{
      .entries = std::span(entries_).subspan(descriptor.first_entry, descriptor.entry_count),
      .hits = static_cast<int64_t>(hits)};
  if (descriptor.limit) {
    const uint32_t unit = descriptor.limit->unit;
    const int64_t seconds = unit <= 7 ? SecondsOf(static_cast<Unit>(unit)) : kUnnamed;
    if (seconds == kUnnamed) return refuse("limit.unit: must be SECOND to WEEK (1 to 7)");
    converted.own_rate = {descriptor.limit->requests_per_unit, std::chrono::seconds(seconds)};
  }
  return converted;
}

Result<decide::DescriptorCall> RateLimitService::Read(std::string_view message) {
  if (auto read = reader_.Read(message); !read) return std::unexpected(read.error());
  entries_.clear();
  descriptors_.clear();
  for (const weir::rls::Descriptor& descriptor : reader_.descriptors()) {
    for (const weir::rls::Entry& entry : reader_.entries(descriptor))
      entries_.push_back({entry.key, entry.value});
  }
  for (const weir::rls::Descriptor& descriptor : reader_.descriptors()) {
    const Result<decide::Descriptor> converted = Convert(descriptor, descriptors_.size());
    if (!converted) return std::unexpected(converted.error());
    descriptors_.push_back(*converted);
  }
  return decide::DescriptorCall{.domain = reader_.domain(), .descriptors = descriptors_};
}

Result<const decide::Verdict*> RateLimitService::Decide(std::string_view message, core::Now now) {
  const Result<decide::DescriptorCall> call = Read(message);
  if (!call) return std::unexpected(call.error());
  return worker_.DecideDescriptors(*call, {.door = metrics::Door::kGrpc}, now);
}

Result<decide::DecisionPtr> RateLimitService::Begin(std::string_view message) {
  const Result<decide::DescriptorCall> call = Read(message);
  if (!call) return std::unexpected(call.error());
  return worker_.BeginDescriptors(*call, {.door = metrics::Door::kGrpc});
}

void RateLimitService::AppendResponse(const decide::Verdict& verdict, int64_t wall_ns,
                                      wire::Buffer& out) {
  weir::rls::ResponseWriter writer(out);
  writer.OverallCode(verdict.allowed ? Code::kOk : Code::kOverLimit);
  for (const decide::DescriptorStatus& status : verdict.descriptors)
    writer.Status(StatusOf(status));
  AppendHeaders(verdict, wall_ns, writer);
}

void RateLimitService::AppendHeaders(const decide::Verdict& verdict, int64_t wall_ns,
                                     weir::rls::ResponseWriter& writer) {
  policy::AnswersConfig config = worker_.policy_in_use().config().answers;
  config.x_ratelimit = false;
  config.openai = false;
  const answers::RetryAdvice advice = answers::AdviseRetry(verdict, config, NextRandom(random_));
  text_.Clear();
  answers::AppendLimitHeaders(verdict, config, advice, wall_ns, text_);
  for (std::string_view lines = text_.View(); !lines.empty();) {
    const std::string_view line = lines.substr(0, lines.find("\r\n"));
    const size_t colon = line.find(':');
    writer.ResponseHeader(line.substr(0, colon), line.substr(colon + 2));
    lines.remove_prefix(line.size() + 2);
  }
  if (verdict.allowed || verdict.binding == nullptr) return;
  const answers::BodyShape shape = answers::ShapeOf(config, {});
  writer.ResponseHeader("content-type", answers::ContentTypeOf(shape));
  writer.ResponseHeader("cache-control", "no-store");
  text_.Clear();
  answers::AppendTooManyRequests(verdict, shape, advice, {.wall_ns = wall_ns}, text_);
  writer.RawBody(text_.View());
  writer.Metadata("limit", verdict.binding->name);
  writer.Metadata("source", SourceName(verdict.source));
  if (advice.helps) writer.Metadata("retry_after_ms", static_cast<double>(advice.milliseconds));
}

}  // namespace weir::doors::rls
