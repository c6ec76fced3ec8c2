// The arguments and answers of the scripts: MessagePack arrays of whole numbers and strings, the
// keys of a call without repeats, and its meters as the scripts know them.
//
//   Message message;
//   message.Number(300);
//   message.Bytes(id);
//
// Thread safety: none; one owner at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/keyed_hash.h"
#include "core/meter.h"

namespace weir::store::redis {

// Appends values in MessagePack.
class Message {
 public:
  void Array(size_t items);
  void Number(int64_t value);
  void Bytes(std::string_view bytes);
  void False() { text_.push_back('\xc2'); }
  void Raw(const Message& other) { text_ += other.text_; }
  void Clear() { text_.clear(); }
  const std::string& text() const { return text_; }

 private:
  void BigEndian(uint64_t value, int bytes);
  std::string text_;
};

// Reads an array's length or a whole number and moves `at` on; nothing: that is not there.
std::optional<size_t> ReadArray(std::string_view text, size_t& at);
std::optional<int64_t> ReadNumber(std::string_view text, size_t& at);

// The counters of a call, each once.
class KeyList {
 public:
  explicit KeyList(std::string_view prefix);
  // The key's place, from 1 on.
  size_t Add(uint64_t tag, base::Key128 key);
  size_t size() const { return keys_.size(); }
  std::vector<std::string_view> Views() const;

 private:
  struct Entry {
    uint64_t tag;
    base::Key128 key;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  uint32_t& Slot(const Entry& entry);

  const std::string prefix_;
  std::vector<Entry> keys_;
  std::string names_;            // All of one length, one after the other.
  std::vector<uint32_t> table_;  // Open addressing over keys_; 0 is free.
};

// A counter's state as the scripts keep it: the algorithm, told apart where state or arithmetic
// differ.
enum class ScriptForm : uint8_t {
  kTickBucket = 1,  // Of TickBucket: a level in ticks, one number.
  kWideTickBucket,  // The same where the level would not be exact in one double.
  kExactBucket,     // Of ExactBucket, in ticks.
  kWideExactBucket,
  kWindow,
  kCalendar,
  kCounter,
  kStrictCounter,
  kLog,
  kParallel,
  kDenyAll,
};

// The numbers of a meter: see counters/start.lua for what each form makes of a, b and c. They are
// kept with every state, as 22 bytes, so that a later rate can carry the used units over.
struct MeterCode {
  ScriptForm form = ScriptForm::kDenyAll;
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
  int64_t limit = 0;
  int64_t tau = 0;  // kTickBucket and kExactBucket.

  std::string Descriptor() const;
};
MeterCode CodeOf(const core::Meter& meter);
// Of a spec that Meter::Compile takes; nothing when a number would not be exact.
std::optional<MeterCode> CodeOf(const core::MeterSpec& spec);

// What all keys of a tag begin with, up to and with the braces that choose their slot.
std::string TagKey(std::string_view prefix, uint64_t tag);
// "weir:1:{TAG}:KEY", the tag in 16 and the key in 32 hexadecimal digits.
std::string CounterKey(std::string_view prefix, uint64_t tag, base::Key128 key);

// By how much the key's fixed windows of this length are shifted, in whole microseconds down.
int64_t WindowOffsetUs(int64_t length_us, base::Key128 key);

// The meters of a call, each once.
class MeterList {
 public:
  explicit MeterList(int64_t unix_ns) : unix_ns_(unix_ns) {}
  // The meter's place, from 1 on.
  size_t Add(const core::Meter& meter);
  const MeterCode& code(size_t place) const { return codes_[place - 1]; }
  void AppendTo(Message& message) const;

 private:
  const int64_t unix_ns_;
  std::vector<const core::Meter*> meters_;
  std::vector<MeterCode> codes_;
};

}  // namespace weir::store::redis
