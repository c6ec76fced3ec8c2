#include "net/http2_request.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "wire/decimal.h"
#include "wire/http1/body.h"
#include "wire/http1/response_writer.h"

namespace weir::net {
namespace {

// Those that frame an HTTP/1.1 message or speak of its connection: malformed here (RFC 9113,
// 8.2.2).
bool IsOfTheConnection(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {"connection", "transfer-encoding", "upgrade",
                                                      "keep-alive", "proxy-connection"};
  return std::ranges::find(kNames, name) != kNames.end();
}

http1::Method MethodOf(std::string_view method) {
  if (method == "HEAD") return http1::Method::kHead;
  if (method == "CONNECT") return http1::Method::kConnect;
  return http1::Method::kOther;  // Others do not change how an answer is read.
}

void Append(std::string& to, std::string_view part, std::string_view between) {
  if (!to.empty()) to += between;
  to += part;
}

}  // namespace

void Http2Request::AddField(std::string_view name, std::string_view value) {
  if (name.starts_with(':')) {
    AddPseudoField(name, value);
  } else {
    AddOrdinaryField(name, value);
  }
}

void Http2Request::AddPseudoField(std::string_view name, std::string_view value) {
  std::string* field = nullptr;
  if (name == ":method") field = &method_;
  if (name == ":path") field = &path_;
  if (name == ":authority") field = &authority_;
  if (field == nullptr) {
    // How the call came is known from the connection, whatever :scheme says.
    malformed_ = malformed_ || name != ":scheme";
    return;
  }
  malformed_ = malformed_ || head_complete_ || !field->empty();
  *field = value;
}

void Http2Request::AddOrdinaryField(std::string_view name, std::string_view value) {
  if (IsOfTheConnection(name)) {
    malformed_ = true;
  } else if (head_complete_) {
    http1::AppendField(fields_, name, value);  // A trailer that is not valid is left out.
  } else if (name == "host") {
    malformed_ = malformed_ || !host_.empty();
    host_ = value;
  } else if (name == "cookie") {
    Append(cookie_, value, "; ");  // One field in HTTP/1.1 (RFC 9113, 8.2.3).
  } else {
    if (name == "expect") expects_continue_ = true;
    if (name == "content-length") {
      const std::optional<int64_t> length = wire::ParseDecimal(value);
      malformed_ = malformed_ || has_length_ || !length;
      has_length_ = true;
      left_bytes_ = length.value_or(0);
    }
    if (!http1::AppendField(fields_, name, value)) malformed_ = true;
  }
}

bool Http2Request::FinishHead(bool ends) {
  head_complete_ = true;
  complete_ = ends;
  method_id_ = MethodOf(method_);
  if (method_id_ == http1::Method::kConnect && path_.empty()) path_ = authority_;
  if (malformed_ || !http1::AppendRequestLine(framing_, method_, path_)) {
    framing_.Clear();
    return false;
  }
  // A Host at odds with :authority is passed on as well, for the parser to refuse both.
  const std::string& host = authority_.empty() ? host_ : authority_;
  bool valid = http1::AppendField(framing_, "Host", host);
  if (!host_.empty() && host_ != host) valid = http1::AppendField(framing_, "Host", host_) && valid;
  if (!cookie_.empty()) valid = http1::AppendField(framing_, "Cookie", cookie_) && valid;
  if (!valid) {
    framing_.Clear();
    return false;
  }
  framing_.Append(fields_.View());
  fields_.ClearAndShrink(0);
  if (has_length_) {
    framing_kind_ = Framing::kLength;
  } else if (!ends) {
    framing_kind_ = Framing::kChunked;
    framing_.Append("Transfer-Encoding: chunked\r\n");
  }
  framing_.Append("\r\n");
  return true;
}

void Http2Request::AppendBody(std::string_view bytes) { body_.Append(bytes); }

void Http2Request::Finish() {
  complete_ = true;
  if (framing_kind_ == Framing::kChunked && body_.empty() && left_bytes_ == 0) BeginChunk();
}

// What comes when the chunk before has gone: the size of the next, or the end of all.
void Http2Request::BeginChunk() {
  if (!body_.empty()) {
    left_bytes_ = static_cast<int64_t>(body_.size());
    http1::ChunkedWriter::AppendChunkBegin(framing_, body_.size());
  } else if (complete_) {
    framing_kind_ = Framing::kNone;
    framing_.Append("0\r\n");
    framing_.Append(fields_.View());
    framing_.Append("\r\n");
  }
}

Http2Request::Given Http2Request::Read(std::span<char> room) {
  Given given;
  const auto take = [&](wire::Buffer& from, size_t most) {
    const size_t part = std::min({from.size(), most, room.size() - given.bytes});
    std::memcpy(room.data() + given.bytes, from.data(), part);
    from.Consume(part);
    given.bytes += part;
    return part;
  };
  while (given.bytes < room.size()) {
    if (!framing_.empty()) {
      take(framing_, framing_.size());
    } else if (left_bytes_ > 0 && !body_.empty()) {
      const size_t part = take(body_, static_cast<size_t>(left_bytes_));
      given.body_bytes += part;
      left_bytes_ -= static_cast<int64_t>(part);
      if (left_bytes_ > 0 || framing_kind_ != Framing::kChunked) continue;
      http1::ChunkedWriter::AppendChunkEnd(framing_);
      BeginChunk();
    } else if (framing_kind_ == Framing::kChunked && !body_.empty()) {
      BeginChunk();
    } else {
      break;
    }
  }
  return given;
}

}  // namespace weir::net
