#include "base/suggest.h"

#include <algorithm>
#include <vector>

namespace weir::base {
namespace {

// Names longer than this are no misspellings; it also bounds the work per name.
constexpr size_t kLongestName = 64;

// Optimal string alignment: insertions, deletions, substitutions, and swaps of neighbours cost 1.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string DidYouMean(std::string_view name, std::span<const std::string_view> known) {
  if (name.empty() || name.size() > kLongestName) return "";
  // A third of the letters may be wrong, but one always may: `rat` is `rate`, `xy` is nothing.
  const size_t allowed = std::max<size_t>(1, name.size() / 3);
  size_t best = allowed + 1;
  std::string_view nearest;
  for (std::string_view candidate : known) {
    const size_t distance = EditDistance(name, candidate);
    if (distance < best && distance < candidate.size()) {
      best = distance;
      nearest = candidate;
    }
  }
  if (nearest.empty()) return "";
  return "; did you mean `" + std::string(nearest) + "`?";
}

std::string ListOfNames(std::span<const std::string_view> names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += "`" + std::string(names[i]) + "`";
  }
  return out;
}

}  // namespace weir::base
