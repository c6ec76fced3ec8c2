#include "doors/ops/ops.h"

#include <algorithm>

#include "doors/answer.h"

namespace weir::doors {
namespace {

constexpr Endpoint kEndpoints[] = {{"GET, HEAD", "/livez"},
                                   {"GET, HEAD", "/healthz"},
                                   {"GET, HEAD", "/readyz"},
                                   {"GET, HEAD", "/metrics"}};
constexpr std::string_view kPlain = "text/plain; charset=utf-8";

}  // namespace

void Ops::Answer(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  const std::string_view path = request.head.path;
  const bool known = std::ranges::any_of(
      kEndpoints, [&](const Endpoint& endpoint) { return endpoint.path == path; });
  if (!known) return AnswerNoSuchPath(request, kEndpoints, answer);
  if (!IsGet(request.head)) return AnswerNoSuchMethod(request, kEndpoints, answer);
  if (path == "/metrics") {
    return AnswerText(request, 200, metrics::Registry::kContentType, metrics_.Expose(), answer);
  }
  if (path == "/readyz" && !ready_.load(std::memory_order_relaxed)) {
    return AnswerText(request, 503, kPlain, "not ready\n", answer);
  }
  AnswerText(request, 200, kPlain, "ok\n", answer);
}

}  // namespace weir::doors
