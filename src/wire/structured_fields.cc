#include "wire/structured_fields.h"

#include <algorithm>

namespace weir::wire {
namespace {

void AppendParameter(Buffer& out, std::string_view key_and_equals, int64_t value) {
  out.Append(key_and_equals);
  AppendStructuredInteger(out, value);
}

void AppendPartitionKey(Buffer& out, std::string_view base64) {
  if (base64.empty()) return;
  out.Append(";pk=:");
  out.Append(base64);
  out.Append(':');
}

void BeginItem(Buffer& out, bool first, std::string_view name) {
  if (!first) out.Append(", ");
  AppendStructuredString(out, name);
}

}  // namespace

void AppendStructuredString(Buffer& out, std::string_view text) {
  char* const begin = out.Prepare(text.size() * 2 + 2);
  char* to = begin;
  *to++ = '"';
  for (char c : text) {
    if (c == '"' || c == '\\') *to++ = '\\';
    *to++ = (c >= 0x20 && c < 0x7f) ? c : '?';
  }
  *to++ = '"';
  out.Commit(static_cast<size_t>(to - begin));
}

void AppendStructuredInteger(Buffer& out, int64_t value) {
  out.AppendDecimal(std::clamp(value, -kStructuredIntegerMax, kStructuredIntegerMax));
}

void AppendPolicyItem(Buffer& out, bool first, const PolicyItem& item) {
  BeginItem(out, first, item.name);
  AppendParameter(out, ";q=", item.quota);
  AppendParameter(out, ";w=", item.window_seconds);
  if (!item.unit.empty()) {
    out.Append(";qu=");
    AppendStructuredString(out, item.unit);
  }
  AppendPartitionKey(out, item.partition_key);
}

void AppendRateLimitItem(Buffer& out, bool first, const RateLimitItem& item) {
  BeginItem(out, first, item.name);
  AppendParameter(out, ";r=", item.remaining);
  if (item.reset_seconds >= 0) AppendParameter(out, ";t=", item.reset_seconds);
  AppendPartitionKey(out, item.partition_key);
}

}  // namespace weir::wire
