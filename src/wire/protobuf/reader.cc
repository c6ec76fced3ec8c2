#include "wire/protobuf/reader.h"

namespace weir::protobuf {
namespace {

constexpr int kGroupDepthMax = 100;  // As the library has it.

}  // namespace

bool Reader::ReadVarint(uint64_t& value) {
  uint64_t read = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (at_ == end_) return Fail();
    const auto byte = static_cast<unsigned char>(*at_++);
    read |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      value = read;  // What the tenth byte has beyond its one bit is lost, as in the library.
      return true;
    }
  }
  return Fail();
}

// At most five bytes, and what the fifth has beyond 32 bits is lost, as in the library.
bool Reader::ReadTag(uint32_t& tag) {
  tag = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    if (at_ == end_) return Fail();
    const auto byte = static_cast<unsigned char>(*at_++);
    tag |= static_cast<uint32_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return tag >> 3 != 0 || Fail();
  }
  return Fail();
}

bool Reader::ReadFixed(size_t bytes) {
  if (static_cast<size_t>(end_ - at_) < bytes) return Fail();
  value_ = 0;
  for (size_t i = 0; i < bytes; ++i) {
    value_ |= static_cast<uint64_t>(static_cast<unsigned char>(at_[i])) << (8 * i);
  }
  at_ += bytes;
  return true;
}

bool Reader::Next() {
  if (!ok_ || at_ == end_) return false;
  uint32_t tag = 0;
  if (!ReadTag(tag)) return false;
  number_ = tag >> 3;
  type_ = static_cast<WireType>(tag & 7);
  switch (tag & 7) {
    case 0:
      return ReadVarint(value_);
    case 1:
      return ReadFixed(8);
    case 2: {
      uint64_t length = 0;
      if (!ReadVarint(length) || length > static_cast<uint64_t>(end_ - at_)) return Fail();
      bytes_ = {at_, static_cast<size_t>(length)};
      at_ += length;
      return true;
    }
    case 3:
      return SkipGroup();
    case 5:
      return ReadFixed(4);
    default:
      return Fail();
  }
}

// An unknown field of the deprecated kind: passed over whole.
bool Reader::SkipGroup() {
  uint32_t open[kGroupDepthMax];
  int depth = 0;
  open[depth++] = number_;
  while (depth > 0) {
    uint32_t tag = 0;
    if (!ReadTag(tag)) return false;
    const uint32_t number = tag >> 3;
    uint64_t length = 0;
    switch (tag & 7) {
      case 0:
        if (!ReadVarint(length)) return false;
        break;
      case 1:
        if (!ReadFixed(8)) return false;
        break;
      case 2:
        if (!ReadVarint(length) || length > static_cast<uint64_t>(end_ - at_)) return Fail();
        at_ += length;
        break;
      case 3:
        if (depth == kGroupDepthMax) return Fail();
        open[depth++] = number;
        break;
      case 4:
        if (open[--depth] != number) return Fail();
        break;
      case 5:
        if (!ReadFixed(4)) return false;
        break;
      default:
        return Fail();
    }
  }
  return true;
}

}  // namespace weir::protobuf
