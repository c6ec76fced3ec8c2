#include "store/redis/message.h"

namespace weir::store::redis {
namespace {

void AppendHex(std::string& out, uint64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int shift = 60; shift >= 0; shift -= 4) out.push_back(kDigits[value >> shift & 15]);
}

}  // namespace

void Message::BigEndian(uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text_.push_back(static_cast<char>(value >> shift));
  }
}

void Message::Array(size_t items) {
  if (items < 16) {
    text_.push_back(static_cast<char>(0x90 | items));
  } else {
    text_.push_back('\xdd');
    BigEndian(items, 4);
  }
}

void Message::Number(int64_t value) {
  if (value >= -32 && value < 128) {
    text_.push_back(static_cast<char>(value));
  } else if (value >= 0 && value < int64_t{1} << 16) {
    text_.push_back('\xcd');
    BigEndian(static_cast<uint64_t>(value), 2);
  } else {
    text_.push_back('\xd3');
    BigEndian(static_cast<uint64_t>(value), 8);
  }
}

// REQUIRES: at most 31 bytes.
void Message::Bytes(std::string_view bytes) {
  text_.push_back(static_cast<char>(0xa0 | bytes.size()));
  text_ += bytes;
}

namespace {

// `bytes` bytes at `at`, the sign in the first where there is one.
std::optional<int64_t> ReadBytes(std::string_view text, size_t& at, size_t bytes, bool is_signed) {
  if (text.size() - at < bytes) return std::nullopt;
  const bool negative = is_signed && (static_cast<unsigned char>(text[at]) & 0x80) != 0;
  uint64_t value = negative ? ~uint64_t{0} : 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(text[at + i]);
  at += bytes;
  return static_cast<int64_t>(value);
}

}  // namespace

std::optional<size_t> ReadArray(std::string_view text, size_t& at) {
  if (at >= text.size()) return std::nullopt;
  const auto type = static_cast<unsigned char>(text[at]);
  if ((type & 0xf0) == 0x90) {
    ++at;
    return type & 0x0f;
  }
  if (type != 0xdc && type != 0xdd) return std::nullopt;
  const std::optional<int64_t> items = ReadBytes(text, ++at, type == 0xdc ? 2 : 4, false);
  if (!items) return std::nullopt;
  return static_cast<size_t>(*items);
}

std::optional<int64_t> ReadNumber(std::string_view text, size_t& at) {
  if (at >= text.size()) return std::nullopt;
  const auto type = static_cast<unsigned char>(text[at++]);
  if (type < 0x80) return type;
  if (type >= 0xe0) return static_cast<int8_t>(type);
  if (type >= 0xcc && type <= 0xcf) return ReadBytes(text, at, size_t{1} << (type - 0xcc), false);
  if (type >= 0xd0 && type <= 0xd3) return ReadBytes(text, at, size_t{1} << (type - 0xd0), true);
  return std::nullopt;
}

std::string TagKey(std::string_view prefix, uint64_t tag) {
  std::string key(prefix);
  key.push_back('{');
  AppendHex(key, tag);
  key.push_back('}');
  return key;
}

std::string CounterKey(std::string_view prefix, uint64_t tag, base::Key128 key) {
  std::string name = TagKey(prefix, tag);
  name.push_back(':');
  AppendHex(name, key.hi);
  AppendHex(name, key.lo);
  return name;
}

KeyList::KeyList(std::string_view prefix) : prefix_(prefix), table_(64, 0) {}

// Where the entry is, or the free slot that it belongs in.
uint32_t& KeyList::Slot(const Entry& entry) {
  for (size_t i = entry.key.lo ^ entry.key.hi;; ++i) {
    uint32_t& slot = table_[i & (table_.size() - 1)];
    if (slot == 0 || keys_[slot - 1] == entry) return slot;
  }
}

size_t KeyList::Add(uint64_t tag, base::Key128 key) {
  const Entry entry{tag, key};
  uint32_t& slot = Slot(entry);
  if (slot != 0) return slot;
  keys_.push_back(entry);
  names_ += prefix_;
  names_.push_back('{');
  AppendHex(names_, tag);
  names_ += "}:";
  AppendHex(names_, key.hi);
  AppendHex(names_, key.lo);
  slot = static_cast<uint32_t>(keys_.size());
  if (keys_.size() * 2 > table_.size()) {
    table_.assign(table_.size() * 4, 0);
    for (size_t i = 0; i < keys_.size(); ++i) Slot(keys_[i]) = static_cast<uint32_t>(i + 1);
  }
  return keys_.size();
}

std::vector<std::string_view> KeyList::Views() const {
  std::vector<std::string_view> views;
  views.reserve(keys_.size() + 1);
  const size_t length = keys_.empty() ? 0 : names_.size() / keys_.size();
  for (size_t i = 0; i < keys_.size(); ++i) {
    views.push_back(std::string_view(names_).substr(i * length, length));
  }
  return views;
}

}  // namespace weir::store::redis
