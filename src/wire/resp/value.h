// One reply of Redis or Valkey as a tree: every type of RESP2 and RESP3.
//
//   if (value.IsError()) return Refuse(value.text);
//   for (const resp::Value& item : value.items) Use(item.integer);
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::resp {

enum class Type : uint8_t {
  kNull,          // RESP3 `_`, and RESP2's `$-1` and `*-1`.
  kSimpleString,  // text
  kError,         // text, of a simple or a bulk error: "MOVED 3999 127.0.0.1:6381".
  kInteger,       // integer
  kBulkString,    // text, any bytes.
  kBoolean,       // integer: 0 or 1.
  kDouble,        // real, and text as it was sent.
  kBigNumber,     // text: an optional sign and digits.
  kVerbatim,      // text without its "txt:" in front.
  kArray,         // items
  kSet,           // items
  kMap,           // items: key, value, key, value, …
  kPush,          // items; comes between replies and answers no command.
};

struct Value {
  Type type = Type::kNull;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Value> items;

  bool IsNull() const { return type == Type::kNull; }
  bool IsError() const { return type == Type::kError; }
  bool IsInteger() const { return type == Type::kInteger; }
  // Simple, bulk or verbatim.
  bool IsString() const {
    return type == Type::kSimpleString || type == Type::kBulkString || type == Type::kVerbatim;
  }
  // An array, a set or a push.
  bool IsList() const { return type == Type::kArray || type == Type::kSet || type == Type::kPush; }
  // What a RESP3 server sends as a map and a RESP2 server as an array: the value of `key`, or null.
  const Value* Find(std::string_view key) const;

  friend bool operator==(const Value&, const Value&) = default;
};

}  // namespace weir::resp
