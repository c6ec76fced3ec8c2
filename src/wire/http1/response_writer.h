// Builds an HTTP/1.1 answer at the end of an output buffer: one buffer, one write, also for
// pipelined requests.
//
//   http1::ResponseWriter answer(out);
//   answer.Begin(200);
//   answer.Field("Content-Type", "application/json");
//   answer.Date(date_of_this_second);       // see dates.h; the caller renders it once a second
//   answer.Body(R"({"allowed":true})");
//
// Values are checked: a name that is no token, or a value with CR, LF, NUL or another control
// character, is left out and Field says false, so that nothing a client sends can add a field. No
// allocation once the buffer has grown. Thread safety: none; one owner at a time.
#pragma once

#include <cstdint>
#include <string_view>

#include "wire/buffer.h"

namespace weir::http1 {

// "OK", "Too Many Requests"; "" for a status without a registered phrase.
std::string_view ReasonPhrase(int status);

// Appends "name: value\r\n"; false, and nothing appended, when either is not valid.
bool AppendField(wire::Buffer& out, std::string_view name, std::string_view value);

// Appends "METHOD target HTTP/1.1\r\n"; false, and nothing appended, when the method is no token or
// the target is empty or holds white space or control characters.
bool AppendRequestLine(wire::Buffer& out, std::string_view method, std::string_view target);

class ResponseWriter {
 public:
  explicit ResponseWriter(wire::Buffer& out) : out_(out) {}

  // Where the answer is built, for parts that append whole field lines or a body themselves.
  wire::Buffer& out() { return out_; }

  // The status line. Always HTTP/1.1 (RFC 9112, 2.3). status: 100 to 999. `reason` other than the
  // registered one only to pass an upstream's through; one with control characters is replaced.
  void Begin(int status);
  void Begin(int status, std::string_view reason);

  bool Field(std::string_view name, std::string_view value) {
    return AppendField(out_, name, value);
  }
  void Field(std::string_view name, int64_t value);  // `name` must be a valid token.
  // A block of whole "Name: value\r\n" lines that the caller made and vouches for.
  void TrustedFields(std::string_view lines) { out_.Append(lines); }
  void Date(std::string_view imf_fixdate);  // 29 characters, from FormatHttpDate.
  void Connection(bool keep_alive,
                  int request_minor_version);  // "close", or "keep-alive" for HTTP/1.0, or nothing.

  // Content-Length, the end of the head, and the body.
  void Body(std::string_view body);
  // The head's end of an answer to HEAD: the length that a body would have.
  void EndHeadOnly(int64_t content_length);
  // Transfer-Encoding: chunked and the end of the head; then ChunkedWriter.
  void EndChunked();
  // Only the end of the head: 1xx, 204, 304, or the caller wrote the framing itself.
  void End();

  // A body whose length is not known yet, written straight into the buffer between the two calls.
  // EndBody moves it to close the gap that BeginBody left for the length. Nothing before it in the
  // buffer may be consumed in between.
  void BeginBody();
  void EndBody();

 private:
  wire::Buffer& out_;
  size_t length_at_ = 0;  // Where the digits of Content-Length go, from the buffer's start.
};

}  // namespace weir::http1
