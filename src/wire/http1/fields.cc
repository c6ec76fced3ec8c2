#include "wire/http1/fields.h"

#include <algorithm>

#include "wire/http1/field_line.h"

namespace weir::http1 {
namespace {

// Setting bit 5 lowers a letter and leaves digits and '-' as they are; no other token character
// becomes one of these. So a token equals a lower-case name exactly when the lowered bytes do.
template <typename Word>
bool LoweredEqual(const char* text, const char* lower_case) {
  Word a, b;
  std::memcpy(&a, text, sizeof(Word));
  std::memcpy(&b, lower_case, sizeof(Word));
  return (a | static_cast<Word>(0x2020202020202020ULL)) == b;
}

// `text` holds as many bytes as the name. Overlapping words cover names of any length.
template <size_t kSize>
bool Is(const char* text, const char (&name)[kSize]) {
  constexpr size_t kLength = kSize - 1;
  if constexpr (kLength >= 16) {
    return LoweredEqual<uint64_t>(text, name) && LoweredEqual<uint64_t>(text + 8, name + 8) &&
           LoweredEqual<uint64_t>(text + kLength - 8, name + kLength - 8);
  } else if constexpr (kLength >= 8) {
    return LoweredEqual<uint64_t>(text, name) &&
           LoweredEqual<uint64_t>(text + kLength - 8, name + kLength - 8);
  } else if constexpr (kLength >= 4) {
    return LoweredEqual<uint32_t>(text, name) &&
           LoweredEqual<uint32_t>(text + kLength - 4, name + kLength - 4);
  } else {
    return LoweredEqual<uint16_t>(text, name) &&
           LoweredEqual<uint16_t>(text + kLength - 2, name + kLength - 2);
  }
}

// A comma-separated list whose items are tokens or nothing.
bool IsTokenList(std::string_view list) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view item = list.substr(0, comma);
    while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
    while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
    if (!item.empty() && !IsToken(item)) return false;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return true;
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

}  // namespace

namespace internal {

FieldId IdentifyToken(std::string_view name) {
  const char* const n = name.data();
  switch (name.size()) {
    case 2:
      if (Is(n, "te")) return FieldId::kTe;
      break;
    case 3:
      if (Is(n, "via")) return FieldId::kVia;
      break;
    case 4:
      if (Is(n, "host")) return FieldId::kHost;
      if (Is(n, "date")) return FieldId::kDate;
      break;
    case 6:
      if (Is(n, "accept")) return FieldId::kAccept;
      if (Is(n, "cookie")) return FieldId::kCookie;
      if (Is(n, "expect")) return FieldId::kExpect;
      if (Is(n, "origin")) return FieldId::kOrigin;
      if (Is(n, "server")) return FieldId::kServer;
      break;
    case 7:
      if (Is(n, "api-key")) return FieldId::kApiKey;
      if (Is(n, "upgrade")) return FieldId::kUpgrade;
      if (Is(n, "trailer")) return FieldId::kTrailer;
      break;
    case 9:
      if (Is(n, "x-api-key")) return FieldId::kXApiKey;
      if (Is(n, "x-real-ip")) return FieldId::kXRealIp;
      if (Is(n, "forwarded")) return FieldId::kForwarded;
      break;
    case 10:
      if (Is(n, "connection")) return FieldId::kConnection;
      if (Is(n, "user-agent")) return FieldId::kUserAgent;
      if (Is(n, "keep-alive")) return FieldId::kKeepAlive;
      if (Is(n, "set-cookie")) return FieldId::kSetCookie;
      break;
    case 11:
      if (Is(n, "traceparent")) return FieldId::kTraceparent;
      if (Is(n, "retry-after")) return FieldId::kRetryAfter;
      break;
    case 12:
      if (Is(n, "content-type")) return FieldId::kContentType;
      if (Is(n, "x-request-id")) return FieldId::kXRequestId;
      break;
    case 13:
      if (Is(n, "authorization")) return FieldId::kAuthorization;
      if (Is(n, "cache-control")) return FieldId::kCacheControl;
      break;
    case 14:
      if (Is(n, "content-length")) return FieldId::kContentLength;
      break;
    case 15:
      if (Is(n, "accept-encoding")) return FieldId::kAcceptEncoding;
      if (Is(n, "x-forwarded-for")) return FieldId::kXForwardedFor;
      break;
    case 16:
      if (Is(n, "content-encoding")) return FieldId::kContentEncoding;
      if (Is(n, "proxy-connection")) return FieldId::kProxyConnection;
      if (Is(n, "x-forwarded-host")) return FieldId::kXForwardedHost;
      break;
    case 17:
      if (Is(n, "transfer-encoding")) return FieldId::kTransferEncoding;
      if (Is(n, "x-forwarded-proto")) return FieldId::kXForwardedProto;
      break;
    case 18:
      if (Is(n, "proxy-authenticate")) return FieldId::kProxyAuthenticate;
      break;
    case 19:
      if (Is(n, "proxy-authorization")) return FieldId::kProxyAuthorization;
      break;
    default:
      break;
  }
  return FieldId::kOther;
}

}  // namespace internal

FieldId IdentifyField(std::string_view name) {
  return IsToken(name) ? internal::IdentifyToken(name) : FieldId::kOther;
}

bool EqualIgnoreCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return x == y || Lower(x) == Lower(y);
         });
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), internal::IsTokenByte);
}

bool IsFieldValue(std::string_view text) {
  const char* const end = text.data() + text.size();
  return internal::SkipValueBytes(text.data(), end) == end;
}

bool HasToken(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
    while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
    if (EqualIgnoreCase(item, token)) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

const HeaderField* FixedHeaders::Find(std::string_view name) const {
  for (const HeaderField& field : *this) {
    if (EqualIgnoreCase(field.name, name)) return &field;
  }
  return nullptr;
}

const HeaderField* FixedHeaders::Find(FieldId id) const {
  for (const HeaderField& field : *this) {
    if (field.id == id) return &field;
  }
  return nullptr;
}

bool WorthParsing(std::string_view head, const HeadProgress& progress) {
  if (progress.scanned_bytes == 0) return true;
  size_t at = std::min(progress.scanned_bytes, head.size());
  for (;;) {
    at = head.find('\n', at);
    if (at == std::string_view::npos) return false;
    if (at == 0 || head[at - 1] != '\r') return true;  // A bare line feed.
    if (at >= 2 && head[at - 2] == '\n') return true;  // The empty line.
    ++at;
  }
}

bool ParseContentLength(std::string_view text, int64_t& length) {
  if (text.empty() || text.size() > 18) return false;
  int64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + (c - '0');
  }
  length = value;
  return true;
}

const char* Framing::Take(const HeaderField& field, int minor_version) {
  switch (field.id) {
    case FieldId::kContentLength:
      if (has_content_length) return "more than one Content-Length";
      if (chunked) return "both Transfer-Encoding and Content-Length";
      if (!ParseContentLength(field.value, content_length)) return "a bad Content-Length";
      has_content_length = true;
      return nullptr;
    case FieldId::kTransferEncoding:
      if (minor_version == 0) return "Transfer-Encoding in HTTP/1.0";
      if (has_content_length) return "both Transfer-Encoding and Content-Length";
      if (chunked) return "more than one Transfer-Encoding";
      if (!EqualIgnoreCase(field.value, "chunked")) return "a Transfer-Encoding other than chunked";
      chunked = true;
      return nullptr;
    case FieldId::kConnection:
      if (field.value == "keep-alive") {  // What nearly everybody sends.
        keep_alive = true;
        return nullptr;
      }
      if (!IsTokenList(field.value)) return "a bad Connection";
      close = close || HasToken(field.value, "close");
      keep_alive = keep_alive || HasToken(field.value, "keep-alive");
      upgrade_named = upgrade_named || HasToken(field.value, "upgrade");
      return nullptr;
    case FieldId::kUpgrade:
      upgrade_field = true;
      return nullptr;
    default:
      return nullptr;
  }
}

}  // namespace weir::http1
