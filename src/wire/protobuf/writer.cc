#include "wire/protobuf/writer.h"

#include <bit>
#include <cstring>

namespace weir::protobuf {
namespace {

constexpr size_t kVarintBytesMax = 10;

size_t PutVarint(char* to, uint64_t value) {
  size_t bytes = 0;
  for (; value >= 0x80; value >>= 7) to[bytes++] = static_cast<char>(value | 0x80);
  to[bytes++] = static_cast<char>(value);
  return bytes;
}

void AppendVarint(wire::Buffer& out, uint64_t value) {
  out.Commit(PutVarint(out.Prepare(kVarintBytesMax), value));
}

}  // namespace

void Writer::VarintAlways(uint32_t number, uint64_t value) {
  AppendVarint(out_, number << 3);
  AppendVarint(out_, value);
}

void Writer::Double(uint32_t number, double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  AppendVarint(out_, number << 3 | 1);
  for (int shift = 0; shift < 64; shift += 8) out_.Append(static_cast<char>(bits >> shift & 0xff));
}

void Writer::BytesAlways(uint32_t number, std::string_view bytes) {
  AppendVarint(out_, number << 3 | 2);
  AppendVarint(out_, bytes.size());
  out_.Append(bytes);
}

void Writer::Pair(uint32_t number, std::string_view first, std::string_view second) {
  constexpr size_t kOneByteMax = 127;
  const size_t bytes = 4 + first.size() + second.size();
  if (number > 15 || bytes > kOneByteMax || first.empty() || second.empty()) {
    const Nested pair(*this, number);
    Bytes(1, first);
    Bytes(2, second);
    return;
  }
  char* at = out_.Prepare(2 + bytes);
  const auto front = [&at](uint32_t field, size_t length) {
    *at++ = static_cast<char>(field << 3 | 2);
    *at++ = static_cast<char>(length);
  };
  front(number, bytes);
  front(1, first.size());
  at = static_cast<char*>(std::memcpy(at, first.data(), first.size())) + first.size();
  front(2, second.size());
  std::memcpy(at, second.data(), second.size());
  out_.Commit(2 + bytes);
}

Writer::Nested::Nested(Writer& writer, uint32_t number) : out_(writer.out_) {
  AppendVarint(out_, number << 3 | 2);
  out_.Append('\0');
  begin_ = out_.size();
}

Writer::Nested::~Nested() {
  const size_t bytes = out_.size() - begin_;
  char length[kVarintBytesMax];
  const size_t length_bytes = PutVarint(length, bytes);
  if (length_bytes > 1) {
    out_.Prepare(length_bytes - 1);
    out_.Commit(length_bytes - 1);
    char* const content = out_.data() + begin_;
    std::memmove(content + length_bytes - 1, content, bytes);
  }
  std::memcpy(out_.data() + begin_ - 1, length, length_bytes);
}

}  // namespace weir::protobuf
