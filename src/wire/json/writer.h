// Appends JSON to an output buffer. It places commas; it does not check that the calls make one
// well-formed document.
//
//   json::Writer json(out);
//   json.BeginObject();
//   json.Key("allowed").Bool(true).Key("limits").BeginArray().Int(3).EndArray();
//   json.EndObject();                          // {"allowed":true,"limits":[3]}
//
// No allocation once the buffer has grown. Thread safety: none; one owner at a time.
#pragma once

#include <cstdint>
#include <string_view>

#include "wire/buffer.h"

namespace weir::json {

// Appends the text in quotes, escaped. Bytes that are not valid UTF-8 become U+FFFD, so that the
// output is always JSON.
void AppendString(wire::Buffer& out, std::string_view text);

class Writer {
 public:
  explicit Writer(wire::Buffer& out) : out_(out) {}

  Writer& BeginObject() { return Open('{'); }
  Writer& EndObject() { return Close('}'); }
  Writer& BeginArray() { return Open('['); }
  Writer& EndArray() { return Close(']'); }

  // A name known to need no escaping: no quote, backslash or control character in it.
  Writer& Key(std::string_view plain_name) {
    Separate();
    char* to = out_.Prepare(plain_name.size() + 3);
    *to = '"';
    std::memcpy(to + 1, plain_name.data(), plain_name.size());
    to[plain_name.size() + 1] = '"';
    to[plain_name.size() + 2] = ':';
    out_.Commit(plain_name.size() + 3);
    comma_ = false;
    return *this;
  }
  // A name from outside, escaped.
  Writer& EscapedKey(std::string_view name) {
    Separate();
    AppendString(out_, name);
    out_.Append(':');
    comma_ = false;
    return *this;
  }
  Writer& String(std::string_view text) {
    Separate();
    AppendString(out_, text);
    return *this;
  }
  Writer& Int(int64_t value) {
    Separate();
    out_.AppendDecimal(value);
    return *this;
  }
  Writer& Bool(bool value) { return Raw(value ? "true" : "false"); }
  Writer& Null() { return Raw("null"); }
  // A value that is JSON already.
  Writer& Raw(std::string_view json) {
    Separate();
    out_.Append(json);
    return *this;
  }

 private:
  void Separate() {
    if (comma_) out_.Append(',');
    comma_ = true;
  }
  Writer& Open(char bracket) {
    Separate();
    out_.Append(bracket);
    comma_ = false;
    return *this;
  }
  Writer& Close(char bracket) {
    out_.Append(bracket);
    comma_ = true;
    return *this;
  }

  wire::Buffer& out_;
  bool comma_ = false;
};

}  // namespace weir::json
