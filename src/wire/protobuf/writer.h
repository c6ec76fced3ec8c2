// Writer: appends protobuf fields to a buffer. The length of a nested message is written when it is
// complete; all here are short, so that one byte is set aside for it and more are made where
// needed.
//
//   protobuf::Writer writer(out);
//   writer.Varint(1, 2);
//   {
//     protobuf::Writer::Nested status(writer, 2);
//     writer.Bytes(3, name);
//   }
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/buffer.h"

namespace weir::protobuf {

class Writer {
 public:
  explicit Writer(wire::Buffer& out) : out_(out) {}

  // Zero and "" are not written: what proto3 has them mean. The *Always are.
  void Varint(uint32_t number, uint64_t value) {
    if (value != 0) VarintAlways(number, value);
  }
  void VarintAlways(uint32_t number, uint64_t value);
  void Double(uint32_t number, double value);
  void Bytes(uint32_t number, std::string_view bytes) {
    if (!bytes.empty()) BytesAlways(number, bytes);
  }
  void BytesAlways(uint32_t number, std::string_view bytes);
  // A nested message of two texts, as a map's entry is: fields 1 and 2.
  void Pair(uint32_t number, std::string_view first, std::string_view second);

  // A nested message: what is written while this lives.
  class Nested {
   public:
    Nested(Writer& writer, uint32_t number);
    ~Nested();
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    wire::Buffer& out_;
    size_t begin_;  // Of the content.
  };

 private:
  wire::Buffer& out_;
};

}  // namespace weir::protobuf
