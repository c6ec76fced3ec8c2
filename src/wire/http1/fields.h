// What request and response heads share: header fields in place, how a body is framed, how a parse
// ended.
//
//   for (const http1::HeaderField& field : head.headers) Log(field.name, field.value);
//   if (const http1::HeaderField* key = head.headers.Find("x-api-key")) Use(key->value);
//   if (const http1::HeaderField* host = head.headers.Find(http1::FieldId::kHost))
//   Use(host->value);
//
// Thread safety: plain values. Names and values are views into the buffer that was parsed and live
// as long as it does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::http1 {

// Fields that Weir itself reads, drops or writes; recognised while parsing, so that looking one up
// compares no text.
enum class FieldId : uint8_t {
  kOther,
  kAccept,
  kAcceptEncoding,
  kApiKey,
  kAuthorization,
  kCacheControl,
  kConnection,
  kContentEncoding,
  kContentLength,
  kContentType,
  kCookie,
  kDate,
  kExpect,
  kForwarded,
  kHost,
  kKeepAlive,
  kOrigin,
  kProxyAuthenticate,
  kProxyAuthorization,
  kProxyConnection,
  kRetryAfter,
  kServer,
  kSetCookie,
  kTe,
  kTraceparent,
  kTrailer,
  kTransferEncoding,
  kUpgrade,
  kUserAgent,
  kVia,
  kXApiKey,
  kXForwardedFor,
  kXForwardedHost,
  kXForwardedProto,
  kXRealIp,
  kXRequestId,
};

// The id of a name in any case; kOther when it is none of them.
FieldId IdentifyField(std::string_view name);

// Equal but for the case of ASCII letters.
bool EqualIgnoreCase(std::string_view a, std::string_view b);

// A token of RFC 9110: not empty, only letters, digits and !#$%&'*+-.^_`|~
bool IsToken(std::string_view text);

// May stand in a field value: no control character but tab (RFC 9110, 5.5).
bool IsFieldValue(std::string_view text);

// Whether the comma-separated list holds the token, in any case: HasToken("close, TE", "te").
bool HasToken(std::string_view list, std::string_view token);

struct HeaderField {
  std::string_view name;   // As written.
  std::string_view value;  // Without the white space around it; may be empty.
  FieldId id = FieldId::kOther;
};

// Up to kCapacity fields, inline, in the order received.
class FixedHeaders {
 public:
  static constexpr size_t kCapacity = 128;

  const HeaderField* begin() const { return fields_.data(); }
  const HeaderField* end() const { return fields_.data() + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const HeaderField& operator[](size_t i) const { return fields_[i]; }

  // The first field of that name (any case), or nullptr.
  const HeaderField* Find(std::string_view name) const;
  const HeaderField* Find(FieldId id) const;  // id != kOther
  // The value of the first such field, or "".
  std::string_view Value(FieldId id) const {
    const HeaderField* field = Find(id);
    return field ? field->value : std::string_view();
  }

  void Clear() { size_ = 0; }
  // False when it is full.
  bool Add(std::string_view name, std::string_view value, FieldId id) {
    if (size_ == kCapacity) return false;
    fields_[size_++] = HeaderField{name, value, id};
    return true;
  }

 private:
  size_t size_ = 0;
  std::array<HeaderField, kCapacity> fields_;
};

enum class BodyKind : uint8_t {
  kNone,
  kLength,  // content_length bytes follow (more than 0 for a request).
  kChunked,
  kUntilClose,  // Responses only: the body ends with the connection.
};

struct HeadLimits {
  size_t bytes_max = 64 * 1024;  // Of the whole head; beyond: 431, or 414 within the first line.
  size_t target_bytes_max = 16 * 1024;  // Beyond: 414.
  // Beyond: 431; at most kCapacity, which leaves room for what a proxy adds.
  size_t fields_max = 100;
};

// How a parse ended.
struct ParseOutcome {
  enum class State : uint8_t { kComplete, kNeedMore, kError };

  State state = State::kNeedMore;
  size_t consumed = 0;  // Bytes of the head, when complete.
  int status = 0;  // On an error: the HTTP status to answer with; close the connection after it.
  const char* reason =
      "";  // On an error: what is wrong, in lower case, without a full stop. Static storage.

  bool complete() const { return state == State::kComplete; }
  bool need_more() const { return state == State::kNeedMore; }
  bool error() const { return state == State::kError; }

  static ParseOutcome Complete(size_t consumed) { return {State::kComplete, consumed, 0, ""}; }
  static ParseOutcome NeedMore() { return {}; }
  static ParseOutcome Fail(int status, const char* reason) {
    return {State::kError, 0, status, reason};
  }
};

// How far earlier calls looked, so that a head that trickles in is scanned once and parsed at most
// twice. Start with a fresh one for each head; never share it between heads.
struct HeadProgress {
  size_t scanned_bytes = 0;
};

}  // namespace weir::http1
