// /v1/authorize: decides for another proxy, as Traefik's ForwardAuth, Caddy's forward_auth and
// nginx's auth_request ask: 200 lets the call pass, 429 (with ?deny=403: 403, which is what
// auth_request understands) refuses it, 401 wants a credential. Limit headers are on all of them,
// so that the proxy can copy them.
//
// Envoy's ext_authz asks for /v1/authorize/PATH instead: the request itself is then the call, with
// its method, its Host and its query.
//
// Otherwise the call is described by X-Forwarded-Method, -Uri, -Host and -For, or X-Original-Method
// and -URI, of a peer in identity.trusted_proxies. From any other peer these are ignored, and the
// request to /v1/authorize itself is what is decided. Identity is read from the request's own
// headers, as at the gateway; Authorization belongs to the client, so a door with a token takes it
// as X-Weir-Token, and asks trusted proxies for none.
//
//   ForwardAuth forward_auth(worker, seed);        // one per loop
//   forward_auth.Answer(request, token, answer);
//
// Thread safety: one loop; it uses that loop's worker. Ownership: borrows the worker.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/task.h"
#include "decide/engine.h"
#include "doors/call_attributes.h"
#include "identity/client_identity.h"
#include "net/http_service.h"
#include "policy/config.h"

namespace weir::doors {

class ForwardAuth {
 public:
  ForwardAuth(decide::Worker& worker, uint64_t jitter_seed)
      : worker_(worker), random_(jitter_seed) {}

  // Whether requests for that path are this door's.
  static bool Takes(std::string_view path);

  void Answer(const net::HttpRequest& request, const policy::Secret& token,
              http1::ResponseWriter& answer);
  // The same over a shared store.
  Task<void> AnswerLater(const net::HttpRequest& request, const policy::Secret& token,
                         http1::ResponseWriter& answer);

 private:
  // The call that the proxy asks about.
  struct Original {
    std::string_view method;
    std::string_view uri;
    std::string_view host;
  };
  static Result<Original> OriginalOf(const http1::RequestHead& head, bool trusted);
  Result<void> Describe(const http1::RequestHead& head, const Original& original,
                        const identity::Identity& who);
  // What a request asks, once it has been read into call_.
  struct Question {
    identity::Identity who;
    int deny_status = 429;
  };
  // Fills in `question`, of which call_ then holds views. False: the request has been answered with
  // what is wrong with it.
  bool Read(const net::HttpRequest& request, const policy::Secret& token, Question& question,
            http1::ResponseWriter& answer);
  static decide::DecideOptions OptionsOf(const Question& question);
  void Conclude(const net::HttpRequest& request, const Question& question, std::string_view path,
                const Result<const decide::Verdict*>& decided, http1::ResponseWriter& answer);
  void AnswerUnauthenticated(const net::HttpRequest& request, std::string_view path,
                             std::string_view reason, http1::ResponseWriter& answer);

  decide::Worker& worker_;
  CallAttributes call_;
  uint64_t random_;
};

}  // namespace weir::doors
