// The decision API: POST /v1/check, /v1/settle, /v1/release, GET /v1/limits, and /v1/authorize
// (forward_auth/).
//
//   doors::CheckApi api(worker);                                  // one per loop
//   loop.Spawn(net::ServeHttp(std::move(stream), api, options, drain));
//
// Thread safety: one loop; it uses that loop's worker. Ownership: borrows the worker.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/task.h"
#include "decide/engine.h"
#include "doors/checks.h"
#include "doors/forward_auth/forward_auth.h"
#include "net/http_service.h"
#include "wire/json/check_request.h"

namespace weir::doors {

class CheckApi final : public net::HttpService {
 public:
  // `jitter_seed` feeds answers.retry_jitter.
  CheckApi(decide::Worker& worker, uint64_t jitter_seed);
  explicit CheckApi(decide::Worker& worker);  // With a seed from the operating system.

  void Answer(const net::HttpRequest& request, http1::ResponseWriter& answer) override;
  bool waits() const override { return worker_.waits(); }
  Task<void> AnswerLater(const net::HttpRequest& request, http1::ResponseWriter& answer) override;

 private:
  // One item of a check on its way: its decision, or why there is none.
  struct Item {
    Result<decide::DecisionPtr> decision;
    Result<const decide::Verdict*> verdict = nullptr;
  };

  void AnswerCheck(const net::HttpRequest& request, http1::ResponseWriter& answer);
  void AnswerBatch(const net::HttpRequest& request, core::Now now, http1::ResponseWriter& answer);
  void AnswerEnd(const net::HttpRequest& request, http1::ResponseWriter& answer);
  void AnswerLimits(const net::HttpRequest& request, http1::ResponseWriter& answer);

  Task<void> CheckLater(const net::HttpRequest& request, http1::ResponseWriter& answer);
  Task<void> FinishItem(Item& item, core::Now now);
  Task<void> EndLater(const net::HttpRequest& request, http1::ResponseWriter& answer);

  // Nothing: the request has been answered with what is wrong with it.
  std::optional<ReservationEnd> ReadEnd(const net::HttpRequest& request,
                                        http1::ResponseWriter& answer);

  void AnswerVerdict(const net::HttpRequest& request, const Result<const decide::Verdict*>& decided,
                     bool wants_status, http1::ResponseWriter& answer);
  static void AppendItem(const Result<const decide::Verdict*>& decided, wire::Buffer& out);
  core::Now NowOf(const net::HttpRequest& request) {
    return worker_.engine().NowAt(request.now_ns, request.wall_ns);
  }

  decide::Worker& worker_;
  Checks checks_;
  json::CheckRequestParser parser_;
  ForwardAuth forward_auth_;
  uint64_t random_;
};

}  // namespace weir::doors
