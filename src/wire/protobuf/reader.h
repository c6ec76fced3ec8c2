// Reader: walks over the fields of a protobuf message in place, with no copy and no allocation
// (https://protobuf.dev/programming-guides/encoding). As strict as the library: a field that does
// not fit ends the walk.
//
//   protobuf::Reader reader(bytes);
//   while (reader.Next()) {
//     if (reader.Is(1, protobuf::WireType::kLength)) name = reader.bytes();
//   }
//   if (!reader.ok()) return InvalidArgument("…");
//
// Thread safety: none; one message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::protobuf {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

class Reader {
 public:
  explicit Reader(std::string_view message)
      : at_(message.data()), end_(message.data() + message.size()) {}

  // The next field. False at the end, and when what follows is no field.
  bool Next();
  bool ok() const { return ok_; }

  uint32_t number() const { return number_; }
  bool Is(uint32_t number, WireType type) const { return number_ == number && type_ == type; }
  // Of a varint, and of the fixed types.
  uint64_t value() const { return value_; }
  std::string_view bytes() const { return bytes_; }

 private:
  bool Fail() {
    ok_ = false;
    return false;
  }
  bool ReadVarint(uint64_t& value);
  bool ReadTag(uint32_t& tag);
  bool ReadFixed(size_t bytes);
  bool SkipGroup();

  const char* at_;
  const char* end_;
  uint32_t number_ = 0;
  WireType type_ = WireType::kVarint;
  uint64_t value_ = 0;
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace weir::protobuf
