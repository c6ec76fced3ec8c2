#include "wire/http1/response_writer.h"

#include <charconv>
#include <cstring>

#include "wire/http1/fields.h"

namespace weir::http1 {
namespace {

constexpr size_t kLengthDigits = 19;  // As many as an int64_t can need.

}  // namespace

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 103:
      return "Early Hints";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 203:
      return "Non-Authoritative Information";
    case 204:
      return "No Content";
    case 205:
      return "Reset Content";
    case 206:
      return "Partial Content";
    case 300:
      return "Multiple Choices";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 407:
      return "Proxy Authentication Required";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 425:
      return "Too Early";
    case 426:
      return "Upgrade Required";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 451:
      return "Unavailable For Legal Reasons";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    case 511:
      return "Network Authentication Required";
    default:
      return "";
  }
}

bool AppendField(wire::Buffer& out, std::string_view name, std::string_view value) {
  if (!IsToken(name) || !IsFieldValue(value)) return false;
  char* to = out.Prepare(name.size() + value.size() + 4);
  std::memcpy(to, name.data(), name.size());
  to += name.size();
  *to++ = ':';
  *to++ = ' ';
  if (!value.empty()) std::memcpy(to, value.data(), value.size());
  to += value.size();
  *to++ = '\r';
  *to++ = '\n';
  out.Commit(name.size() + value.size() + 4);
  return true;
}

bool AppendRequestLine(wire::Buffer& out, std::string_view method, std::string_view target) {
  if (!IsToken(method) || target.empty()) return false;
  for (char c : target) {
    const unsigned char u = static_cast<unsigned char>(c);
    if (u <= ' ' || u >= 0x7f) return false;
  }
  out.Append(method);
  out.Append(' ');
  out.Append(target);
  out.Append(" HTTP/1.1\r\n");
  return true;
}

void ResponseWriter::Begin(int status) {
  if (status == 200) {  // The answer that must be fast.
    out_.Append("HTTP/1.1 200 OK\r\n");
    return;
  }
  Begin(status, ReasonPhrase(status));
}

void ResponseWriter::Begin(int status, std::string_view reason) {
  out_.Append("HTTP/1.1 ");
  out_.AppendDecimal(status);
  out_.Append(' ');
  out_.Append(IsFieldValue(reason) ? reason : ReasonPhrase(status));
  out_.Append("\r\n");
}

void ResponseWriter::Field(std::string_view name, int64_t value) {
  out_.Append(name);
  out_.Append(": ");
  out_.AppendDecimal(value);
  out_.Append("\r\n");
}

void ResponseWriter::Date(std::string_view imf_fixdate) {
  out_.Append("Date: ");
  out_.Append(imf_fixdate);
  out_.Append("\r\n");
}

void ResponseWriter::Connection(bool keep_alive, int request_minor_version) {
  if (!keep_alive) {
    out_.Append("Connection: close\r\n");
  } else if (request_minor_version == 0) {
    out_.Append("Connection: keep-alive\r\n");
  }
}

void ResponseWriter::Body(std::string_view body) {
  EndHeadOnly(static_cast<int64_t>(body.size()));
  out_.Append(body);
}

void ResponseWriter::EndHeadOnly(int64_t content_length) {
  out_.Append("Content-Length: ");
  out_.AppendDecimal(content_length);
  out_.Append("\r\n\r\n");
}

void ResponseWriter::EndChunked() { out_.Append("Transfer-Encoding: chunked\r\n\r\n"); }

void ResponseWriter::End() { out_.Append("\r\n"); }

void ResponseWriter::BeginBody() {
  out_.Append("Content-Length: ");
  length_at_ = out_.size();
  std::memset(out_.Prepare(kLengthDigits + 4), ' ', kLengthDigits + 4);
  out_.Commit(kLengthDigits + 4);
}

void ResponseWriter::EndBody() {
  char* const length = out_.data() + length_at_;
  const char* const body = length + kLengthDigits + 4;
  const size_t body_bytes = out_.size() - length_at_ - (kLengthDigits + 4);
  char* end = std::to_chars(length, length + kLengthDigits, body_bytes).ptr;
  std::memcpy(end, "\r\n\r\n", 4);
  end += 4;
  std::memmove(end, body, body_bytes);
  out_.Truncate(static_cast<size_t>(end + body_bytes - out_.data()));
}

}  // namespace weir::http1
