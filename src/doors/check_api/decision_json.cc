#include "doors/check_api/decision_json.h"

#include "core/int128.h"
#include "core/step.h"
#include "weir/decision.h"
#include "wire/json/writer.h"

namespace weir::doors {
namespace {

constexpr int64_t kMillisecondNs = 1'000'000;

std::string_view Word(bool value) { return value ? "true" : "false"; }

void AppendLimit(const decide::LimitVerdict& limit, wire::Buffer& out) {
  out.Append(R"({"name":)");
  json::AppendString(out, limit.name);
  out.Append(R"(,"unit":")");
  out.Append(JsonUnitName(limit.unit));
  out.Append(R"(","allowed":)");
  out.Append(Word(limit.allowed));
  out.Append(R"(,"quota":)");
  out.AppendDecimal(limit.quota);
  out.Append(R"(,"remaining":)");
  out.AppendDecimal(limit.remaining);
  out.Append(R"(,"reset_after_ms":)");
  AppendMilliseconds(limit.reset_after_ns, out);
  out.Append(R"(,"retry_after_ms":)");
  AppendMilliseconds(limit.retry_after_ns, out);
  out.Append(R"(,"shadow":)");
  out.Append(Word(limit.shadow));
  out.Append('}');
}

}  // namespace

std::string_view JsonUnitName(Unit unit) {
  return unit == Unit::kUsd ? "usd_micros" : UnitName(unit);
}

void AppendMilliseconds(int64_t ns, wire::Buffer& out) {
  if (ns == core::kNever) return out.Append("null");
  out.AppendDecimal(core::CeilDiv64(ns, kMillisecondNs));
}

void AppendDecision(const decide::Verdict& verdict, wire::Buffer& out) {
  out.Append(R"({"allowed":)");
  out.Append(Word(verdict.allowed));
  out.Append(R"(,"denied_by":[)");
  if (!verdict.allowed) {
    bool first = true;
    for (const decide::LimitVerdict& limit : verdict.limits) {
      if (limit.shadow || limit.allowed) continue;
      if (!first) out.Append(',');
      first = false;
      json::AppendString(out, limit.name);
    }
  }
  out.Append(R"(],"source":")");
  out.Append(SourceName(verdict.source));
  out.Append(R"(","retry_after_ms":)");
  AppendMilliseconds(verdict.retry_after_ns, out);
  if (verdict.reservation) {
    const std::array<char, 32> id = decide::ToText(*verdict.reservation);
    out.Append(R"(,"reservation":")");
    out.Append({id.data(), id.size()});
    out.Append(R"(","limits":[)");
  } else {
    out.Append(R"(,"reservation":null,"limits":[)");
  }
  bool first = true;
  for (const decide::LimitVerdict& limit : verdict.limits) {
    if (!first) out.Append(',');
    first = false;
    AppendLimit(limit, out);
  }
  out.Append("]}");
}

void AppendSettled(std::string_view reservation, const decide::Settled& settled,
                   wire::Buffer& out) {
  json::Writer writer(out);
  writer.BeginObject().Key("reservation").String(reservation).Key("charged").BeginObject();
  for (int i = 0; i < kUnitCount; ++i) {
    if ((settled.given >> i & 1) == 0) continue;
    writer.Key(JsonUnitName(static_cast<Unit>(i))).Int(settled.charged[static_cast<size_t>(i)]);
  }
  writer.EndObject().EndObject();
}

}  // namespace weir::doors
