// The door for operators: POST /admin/reload, POST /admin/reset, GET /admin/state, GET /admin/top.
//
//   doors::Admin admin(worker, [&] { return reloader.Reload("POST /admin/reload"); });
//   loop.Spawn(net::ServeHttp(std::move(stream), admin, options, drain));
//
// Thread safety: one loop; it uses that loop's worker. Ownership: borrows the worker. A reload
// reads files, and blocks its loop for as long.
#pragma once

#include <functional>

#include "decide/engine.h"
#include "doors/call_attributes.h"
#include "net/http_service.h"
#include "policy/reload.h"
#include "wire/json/check_request.h"

namespace weir::doors {

// Reads the configuration again and swaps the policy. kInvalidArgument: one fault a line, each as
// "FILE:LINE:COL: what is wrong"; kFailedPrecondition: only a restart could apply it.
using ReloadFunction = std::function<Result<policy::ReloadPlan>()>;

class Admin final : public net::HttpService {
 public:
  Admin(decide::Worker& worker, ReloadFunction reload);

  void Answer(const net::HttpRequest& request, http1::ResponseWriter& answer) override;
  bool waits() const override { return worker_.waits(); }
  Task<void> AnswerLater(const net::HttpRequest& request, http1::ResponseWriter& answer) override;

 private:
  // The call that the request names, into call_, or its descriptor, into entries_; nothing: it has
  // been answered with what is wrong.
  std::optional<std::string> ReadReset(const net::HttpRequest& request,
                                       http1::ResponseWriter& answer);
  bool ReadState(const net::HttpRequest& request, http1::ResponseWriter& answer);
  bool TakeDomain();
  void ViewEntries();
  void AnswerReload(const net::HttpRequest& request, http1::ResponseWriter& answer);
  void AnswerReset(const net::HttpRequest& request, http1::ResponseWriter& answer);
  void AnswerState(const net::HttpRequest& request, http1::ResponseWriter& answer);
  void AnswerTop(const net::HttpRequest& request, http1::ResponseWriter& answer);

  decide::Worker& worker_;
  const ReloadFunction reload_;
  json::CheckRequestParser parser_;
  CallAttributes call_;
  std::vector<std::pair<std::string, std::string>> given_;  // What call_ and entries_ view.
  bool by_descriptor_ = false;
  std::string domain_;
  std::vector<policy::DescriptorEntry> entries_;
};

}  // namespace weir::doors
