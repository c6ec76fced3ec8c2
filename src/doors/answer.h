// What the doors for programs (api, admin, ops) have in common: how an answer begins, how an error
// looks, who may ask.
//
//   if (!MayAsk(request, token)) return AnswerError(request, 401, "unauthenticated", why, answer);
//   AnswerJson(request, 200, body, answer);
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string_view>

#include "identity/address.h"
#include "net/http_service.h"
#include "policy/config.h"
#include "weir/result.h"
#include "wire/http1/response_writer.h"

namespace weir::doors {

// Status line, Content-Type, Date and Connection. `content_type` is trusted.
void BeginAnswer(const net::HttpRequest& request, int status, std::string_view content_type,
                 http1::ResponseWriter& answer);

// A whole answer; to HEAD without its body. Not to be cached.
void AnswerText(const net::HttpRequest& request, int status, std::string_view content_type,
                std::string_view body, http1::ResponseWriter& answer);
void AnswerJson(const net::HttpRequest& request, int status, std::string_view body,
                http1::ResponseWriter& answer);

// {"error":{"code":"invalid_argument","message":"..."}}
void AppendError(std::string_view code, std::string_view message, wire::Buffer& out);
void AnswerError(const net::HttpRequest& request, int status, std::string_view code,
                 std::string_view message, http1::ResponseWriter& answer);
void AnswerError(const net::HttpRequest& request, const Error& error,
                 http1::ResponseWriter& answer);

// "invalid_argument", and the status that goes with it.
std::string_view CodeName(ErrorCode code);
int StatusOf(ErrorCode code);

// 404 with what there is instead, and 405 with Allow.
struct Endpoint {
  std::string_view methods;  // "GET, HEAD"
  std::string_view path;
};
void AnswerNoSuchPath(const net::HttpRequest& request, std::span<const Endpoint> endpoints,
                      http1::ResponseWriter& answer);
// REQUIRES: one of `endpoints` has the request's path.
void AnswerNoSuchMethod(const net::HttpRequest& request, std::span<const Endpoint> endpoints,
                        http1::ResponseWriter& answer);

// True when no token is configured, or the request bears it. Takes the same time wherever the two
// differ.
bool MayAsk(const net::HttpRequest& request, const policy::Secret& token);
bool EqualSecrets(std::string_view a, std::string_view b);

// The socket's peer; 127.0.0.1 for a unix socket.
identity::IpAddress PeerAddress(const net::Endpoint& peer);

inline bool IsGet(const http1::RequestHead& head) {
  return head.method_id == http1::Method::kGet || head.method_id == http1::Method::kHead;
}

}  // namespace weir::doors
