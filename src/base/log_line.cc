#include "base/log_line.h"

#include <charconv>
#include <chrono>
#include <cstddef>

namespace weir {
namespace {

void AppendInteger(int64_t value, std::string& out) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  out.append(digits, end);
}

// `value` with leading zeros up to `width` digits. REQUIRES: value >= 0
void AppendPadded(int64_t value, int width, std::string& out) {
  char digits[24];
  for (int i = width - 1; i >= 0; --i, value /= 10) digits[i] = static_cast<char>('0' + value % 10);
  out.append(digits, static_cast<size_t>(width));
}

// The length of the UTF-8 sequence that starts `text`, or 0 when none does (RFC 3629: no
// surrogates, no overlong forms).
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : 0xbf;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void AppendEscape(unsigned char c, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
  }
}

void AppendName(std::string_view name, std::string& out) {
  out += ',';
  AppendJsonString(name, out);
  out += ':';
}

void AppendText(std::string_view name, std::string_view value, std::string& out) {
  if (value.empty()) return;
  AppendName(name, out);
  AppendJsonString(value, out);
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& out) {
  out += '"';
  size_t at = 0;
  while (at < text.size()) {
    if (at >= Logger::kMaxStringBytes) {
      out += "...";
      break;
    }
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
      AppendEscape(c, out);
      ++at;
      continue;
    }
    const size_t length = Utf8Length(text.substr(at));
    if (length == 0) {
      out += "\xef\xbf\xbd";
      ++at;
    } else {
      out.append(text, at, length);
      at += length;
    }
  }
  out += '"';
}

void AppendTimestamp(int64_t wall_ns, std::string& out) {
  using std::chrono::days;
  using std::chrono::microseconds;
  const std::chrono::sys_time<microseconds> time{
      std::chrono::floor<microseconds>(std::chrono::nanoseconds(wall_ns))};
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const int64_t us = (time - day).count();
  AppendPadded(static_cast<int>(date.year()), 4, out);
  out += '-';
  AppendPadded(static_cast<unsigned>(date.month()), 2, out);
  out += '-';
  AppendPadded(static_cast<unsigned>(date.day()), 2, out);
  out += 'T';
  AppendPadded(us / 3'600'000'000, 2, out);
  out += ':';
  AppendPadded(us / 60'000'000 % 60, 2, out);
  out += ':';
  AppendPadded(us / 1'000'000 % 60, 2, out);
  out += '.';
  AppendPadded(us % 1'000'000, 6, out);
  out += 'Z';
}

void AppendLogLine(const LogRecord& record, std::string& out) {
  out += R"({"ts":")";
  AppendTimestamp(record.wall_ns, out);
  out += R"(","level":")";
  out += LogLevelName(record.level);
  out += R"(","message":)";
  AppendJsonString(record.message, out);
  AppendText("request_id", record.request_id, out);
  AppendText("trace_id", record.trace_id, out);
  AppendText("client", record.client, out);
  AppendText("limit", record.limit, out);
  AppendText("outcome", record.outcome, out);
  AppendText("source", record.source, out);
  if (record.status >= 0) {
    out += R"(,"status":)";
    AppendInteger(record.status, out);
  }
  if (record.duration_ns >= 0) {
    out += R"(,"duration_s":)";
    AppendInteger(record.duration_ns / 1'000'000'000, out);
    out += '.';
    AppendPadded(record.duration_ns / 1000 % 1'000'000, 6, out);
  }
  AppendText("upstream", record.upstream, out);
  AppendText("model", record.model, out);
  for (const LogField& field : record.fields) {
    AppendName(field.name, out);
    if (field.is_integer) {
      AppendInteger(field.integer, out);
    } else {
      AppendJsonString(field.string, out);
    }
  }
  out += '}';
}

}  // namespace weir
