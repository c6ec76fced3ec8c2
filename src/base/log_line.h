// The text of a log line: one JSON object, fields in a fixed order, strings escaped.
//
// Thread safety: plain functions.
//
//   std::string line;
//   AppendLogLine(record, line);     //
//   {"ts":"2026-11-30T20:00:00.000000Z","level":"info","message":"call",...}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/log.h"

namespace weir {

// Appends the record as one JSON object, without a newline. `record.wall_ns` is taken as it is.
void AppendLogLine(const LogRecord& record, std::string& out);

// Appends `text` as a JSON string, quotes included. Control characters, quotes and backslashes are
// escaped, bytes that are not UTF-8 become U+FFFD, and text beyond Logger::kMaxStringBytes is cut
// and ends in "...".
void AppendJsonString(std::string_view text, std::string& out);

// Appends "2026-11-30T20:00:00.123456Z".
void AppendTimestamp(int64_t wall_ns, std::string& out);

}  // namespace weir
