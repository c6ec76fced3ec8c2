#include "doors/answer.h"

#include <netinet/in.h>

#include <cstring>
#include <string>

#include "wire/buffer.h"
#include "wire/json/writer.h"

namespace weir::doors {

void BeginAnswer(const net::HttpRequest& request, int status, std::string_view content_type,
                 http1::ResponseWriter& answer) {
  answer.Begin(status);
  answer.TrustedFields("Content-Type: ");
  answer.TrustedFields(content_type);
  answer.TrustedFields("\r\n");
  answer.Date(request.date);
  answer.Connection(request.head.keep_alive, request.head.minor_version);
}

void AnswerText(const net::HttpRequest& request, int status, std::string_view content_type,
                std::string_view body, http1::ResponseWriter& answer) {
  BeginAnswer(request, status, content_type, answer);
  answer.TrustedFields("Cache-Control: no-store\r\n");
  if (request.head.method_id == http1::Method::kHead)
    return answer.EndHeadOnly(static_cast<int64_t>(body.size()));
  answer.Body(body);
}

void AnswerJson(const net::HttpRequest& request, int status, std::string_view body,
                http1::ResponseWriter& answer) {
  AnswerText(request, status, "application/json", body, answer);
}

void AppendError(std::string_view code, std::string_view message, wire::Buffer& out) {
  json::Writer writer(out);
  writer.BeginObject().Key("error").BeginObject();
  writer.Key("code").String(code).Key("message").String(message);
  writer.EndObject().EndObject();
}

void AnswerError(const net::HttpRequest& request, int status, std::string_view code,
                 std::string_view message, http1::ResponseWriter& answer) {
  wire::Buffer body;
  AppendError(code, message, body);
  AnswerJson(request, status, body.View(), answer);
}

void AnswerError(const net::HttpRequest& request, const Error& error,
                 http1::ResponseWriter& answer) {
  AnswerError(request, StatusOf(error.code), CodeName(error.code), error.message, answer);
}

std::string_view CodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kFailedPrecondition:
      return "failed_precondition";
    case ErrorCode::kUnauthenticated:
      return "unauthenticated";
    case ErrorCode::kPermissionDenied:
      return "permission_denied";
    case ErrorCode::kResourceExhausted:
      return "resource_exhausted";
    case ErrorCode::kDeadlineExceeded:
      return "deadline_exceeded";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kInternal:
      break;
  }
  return "internal";
}

int StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kFailedPrecondition:
      return 409;
    case ErrorCode::kUnauthenticated:
      return 401;
    case ErrorCode::kPermissionDenied:
      return 403;
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kUnavailable:
    case ErrorCode::kCancelled:
      return 503;
    case ErrorCode::kDeadlineExceeded:
      return 504;
    case ErrorCode::kInternal:
      break;
  }
  return 500;
}

void AnswerNoSuchPath(const net::HttpRequest& request, std::span<const Endpoint> endpoints,
                      http1::ResponseWriter& answer) {
  std::string message = "there is no such path here; there are:";
  for (const Endpoint& endpoint : endpoints) {
    message.append(message.back() == ':' ? " " : "; ")
        .append(endpoint.methods)
        .append(" ")
        .append(endpoint.path);
  }
  AnswerError(request, 404, "not_found", message, answer);
}

void AnswerNoSuchMethod(const net::HttpRequest& request, std::span<const Endpoint> endpoints,
                        http1::ResponseWriter& answer) {
  std::string_view methods;
  for (const Endpoint& endpoint : endpoints) {
    if (endpoint.path == request.head.path) methods = endpoint.methods;
  }
  wire::Buffer body;
  AppendError("method_not_allowed", std::string("this path takes ").append(methods), body);
  BeginAnswer(request, 405, "application/json", answer);
  answer.Field("Allow", methods);
  if (request.head.method_id == http1::Method::kHead)
    return answer.EndHeadOnly(static_cast<int64_t>(body.size()));
  answer.Body(body.View());
}

bool EqualSecrets(std::string_view a, std::string_view b) {
  // Every byte of `a` is looked at, whether or not the texts differ in length or in their first
  // byte.
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference = static_cast<unsigned char>(
        difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other)));
  }
  return difference == 0;
}

bool MayAsk(const net::HttpRequest& request, const policy::Secret& token) {
  if (token.empty()) return true;
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view value = request.head.headers.Value(http1::FieldId::kAuthorization);
  if (value.size() < kScheme.size() ||
      !http1::EqualIgnoreCase(value.substr(0, kScheme.size()), kScheme))
    return false;
  return EqualSecrets(value.substr(kScheme.size()), token.Reveal());
}

identity::IpAddress PeerAddress(const net::Endpoint& peer) {
  if (peer.family() == AF_INET) {
    sockaddr_in address;
    std::memcpy(&address, peer.address(), sizeof(address));
    return identity::IpAddress::V4(ntohl(address.sin_addr.s_addr));
  }
  if (peer.family() == AF_INET6) {
    sockaddr_in6 address;
    std::memcpy(&address, peer.address(), sizeof(address));
    return identity::IpAddress::FromV6Bytes(
        std::span<const uint8_t, 16>(address.sin6_addr.s6_addr));
  }
  return identity::IpAddress::V4(0x7f000001);
}

}  // namespace weir::doors
