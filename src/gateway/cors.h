// Cors: what a browser needs to be told before it lets a page read our answers (the Fetch standard,
// "CORS protocol"). Off without configured origins: preflights are then calls like any other, and
// the upstream's own fields pass.
//
// Thread safety: immutable after construction; nothing here allocates.
//
//   Cors cors(config.cors);
//   if (cors.IsPreflight(head)) cors.AnswerPreflight(head, writer);
//   cors.AppendFields(origin, out);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/config.h"
#include "wire/buffer.h"
#include "wire/http1/request_head.h"

namespace weir::gateway {

class Cors {
 public:
  explicit Cors(const policy::CorsConfig& config);

  bool enabled() const { return any_ || !origins_.empty(); }

  // OPTIONS with Origin and Access-Control-Request-Method, while CORS is on. Answered here, never
  // charged or forwarded.
  bool IsPreflight(const http1::RequestHead& head) const;

  // The fields that answer a preflight: what is asked for is granted to a configured origin;
  // another one is told nothing, and so the browser refuses.
  void AppendPreflightFields(const http1::RequestHead& head, wire::Buffer& out) const;

  // The fields of every other answer, for the value of the request's Origin field ("" without one).
  // The limit headers are exposed, so that a page can read how long to wait.
  void AppendFields(std::string_view origin, wire::Buffer& out) const;

  // Whether an upstream's field of that name is replaced by ours.
  bool Replaces(std::string_view name) const;

 private:
  bool Allows(std::string_view origin) const;
  void AppendOrigin(std::string_view origin, wire::Buffer& out) const;

  bool any_ = false;  // "*"
  std::vector<std::string> origins_;
};

}  // namespace weir::gateway
