// Faults of a configuration, one a line as "FILE:LINE:COL: what is wrong", taken apart for
// programs.
//
//   for (const ReloadError& error : SplitReloadErrors(text)) Show(error.file, error.message);
//
// Thread safety: pure functions; views into the text.
#pragma once

#include <string_view>
#include <vector>

namespace weir::doors {

struct ReloadError {
  std::string_view file;  // Empty when the line names no place.
  int line = 0;
  int column = 0;
  std::string_view message;
};

std::vector<ReloadError> SplitReloadErrors(std::string_view text);

}  // namespace weir::doors
