// Writes replies of a Redis server, in the protocol that the client asked for with HELLO.
//
//   resp::ReplyWriter reply(out, /*protocol=*/3);
//   reply.Map(1);
//   reply.Bulk("server");
//   reply.Bulk("weir");
//
// Containers announce their size; exactly so many values must follow. Thread safety: none; the
// buffer has one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/buffer.h"

namespace weir::resp {

class ReplyWriter {
 public:
  ReplyWriter(wire::Buffer& out, int protocol) : out_(out), protocol_(protocol) {}

  // REQUIRES: no CR or LF.
  void Simple(std::string_view text) { Line('+', text); }
  // "ERR what is wrong"; bytes that would end the line early become blanks.
  void Error(std::string_view text);
  void Integer(int64_t value);
  void Bulk(std::string_view bytes);
  void Null() { out_.Append(protocol_ == 3 ? "_\r\n" : "$-1\r\n"); }
  void NullArray() { out_.Append(protocol_ == 3 ? "_\r\n" : "*-1\r\n"); }
  void Array(size_t items) { Count('*', items); }
  // `pairs` keys, each with its value; to RESP2 an array of both.
  void Map(size_t pairs);

 private:
  void Line(char type, std::string_view text);
  void Count(char type, size_t count);

  wire::Buffer& out_;
  int protocol_;
};

}  // namespace weir::resp
