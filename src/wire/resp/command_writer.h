// Writes commands for a Redis or Valkey server: arrays of bulk strings, which RESP2 and RESP3
// share.
//
//   const std::string_view words[] = {"GET", key};
//   resp::AppendCommand(out, words);
//
// Words may hold any bytes. Thread safety: none; the buffer has one owner.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "wire/buffer.h"

namespace weir::resp {

// Appends one whole command. REQUIRES: at least one word.
void AppendCommand(wire::Buffer& out, std::span<const std::string_view> words);

// For commands whose words lie in several places: the header, then exactly `words` words.
void BeginCommand(wire::Buffer& out, size_t words);
void AppendWord(wire::Buffer& out, std::string_view word);
void AppendWord(wire::Buffer& out, int64_t number);

// How many bytes AppendWord adds.
size_t WordBytes(std::string_view word);

}  // namespace weir::resp
