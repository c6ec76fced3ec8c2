// What every fuzz target is built on: a check that stays in release builds and stops the run, and a
// source of small numbers taken from the front of the input.
//
//   fuzz::Check(consumed <= input.size());
//   const size_t piece = fuzz::TakeByte(input);
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace weir::fuzz {

inline void Check(bool holds) {
  if (!holds) std::abort();
}

inline std::string_view Input(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The first byte, taken off; 0 when there is none.
inline size_t TakeByte(std::string_view& input) {
  if (input.empty()) return 0;
  const size_t byte = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  return byte;
}

// Whether `part` lies within `whole`.
inline bool Within(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

}  // namespace weir::fuzz
