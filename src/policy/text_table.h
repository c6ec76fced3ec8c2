// TextTable: numbers by text, for look-ups on the path of a call. A few texts are compared one by
// one, more are found by hash.
//
//   TextTable table;
//   size_t& number = table.At("users");            // TextTable::kNone at first.
//   if (table.Find(value) != TextTable::kNone) ...
//
// The texts come from the configuration, so nobody who calls can make a search long.
//
// Thread safety: Find may be called from any number of threads once nothing is added any more. It
// neither allocates nor blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::policy {

class TextTable {
 public:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  size_t Find(std::string_view text) const {
    if (slots_.empty()) {
      for (const Entry& entry : entries_) {
        if (entry.text == text) return entry.number;
      }
      return kNone;
    }
    const size_t slot = SlotOf(text);
    return slots_[slot] == kNone ? kNone : entries_[slots_[slot]].number;
  }

  // The number of the text, to read or to set; new texts have kNone. Holds until the next At.
  size_t& At(std::string_view text) {
    for (Entry& entry : Candidates(text)) {
      if (entry.text == text) return entry.number;
    }
    entries_.push_back({std::string(text), kNone});
    if (entries_.size() > kScanned) Rehash();
    return entries_.back().number;
  }

 private:
  static constexpr size_t kScanned = 4;  // So many are compared one by one.
  struct Entry {
    std::string text;
    size_t number = kNone;
  };

  // Where the text is, or belongs.
  size_t SlotOf(std::string_view text) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = std::hash<std::string_view>()(text) & mask;
    while (slots_[slot] != kNone && entries_[slots_[slot]].text != text) slot = (slot + 1) & mask;
    return slot;
  }

  std::span<Entry> Candidates(std::string_view text) {
    if (slots_.empty()) return entries_;
    const size_t at = slots_[SlotOf(text)];
    return at == kNone ? std::span<Entry>() : std::span<Entry>(&entries_[at], 1);
  }

  // Puts the last entry in, and all of them anew where more than half of the slots would be taken.
  void Rehash() {
    if (entries_.size() * 2 <= slots_.size()) {
      slots_[SlotOf(entries_.back().text)] = entries_.size() - 1;
      return;
    }
    slots_.assign(std::max<size_t>(slots_.size() * 2, 16), kNone);
    for (size_t i = 0; i < entries_.size(); ++i) slots_[SlotOf(entries_[i].text)] = i;
  }

  std::vector<Entry> entries_;
  std::vector<size_t> slots_;  // Indexes of entries, by hash; empty while there are few.
};

}  // namespace weir::policy
