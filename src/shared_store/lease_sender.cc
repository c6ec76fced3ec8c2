#include "shared_store/lease_sender.h"

#include <utility>

namespace weir::shared_store {
namespace {

using Report = LeaseRequest::Report;

void ReportAll(const std::vector<LeaseRequestPtr>& requests, Report report,
               std::string_view replies) {
  for (size_t i = 0; i < requests.size(); ++i)
    requests[i]->OnReport(report, store::lease::ReplyAt(replies, i));
}

}  // namespace

std::string LeaseKey(std::string_view prefix, uint64_t tag, base::Key128 key) {
  return store::redis::CounterKey(prefix, tag, key) + ":l";
}

LeaseSender::LeaseSender(Options options)
    : options_(std::move(options)),
      queue_(*options_.loop, [this](Requests requests) { return Call(std::move(requests)); }) {}

bool LeaseSender::Send(LeaseRequestPtr request, Lane lane) {
  const uint16_t slot = options_.batcher->GroupOf(request->tag());
  return queue_.Push(slot, std::move(request), lane);
}

Task<void> LeaseSender::Call(Requests requests) {
  Requests sent;
  std::vector<std::string> keys;
  std::vector<store::lease::LeaseItem> items;
  for (LeaseRequestPtr& request : requests) {
    const std::optional<store::lease::LeaseItem> item = request->Encode();
    if (!item) continue;
    items.push_back(*item);
    keys.push_back(LeaseKey(options_.prefix, request->tag(), request->key()));
    sent.push_back(std::move(request));
  }
  if (sent.empty()) co_return;
  const store::lease::Script& script = store::lease::kLeaseScript;
  store::redis::ScriptCall call{script.sha1, script.text, {}, {}};
  for (size_t i = 0; i < sent.size(); ++i) {
    call.keys.push_back(keys[i]);
    call.args.push_back(store::lease::View(items[i]));
  }
  redis::Delivery delivery = redis::Delivery::kUnknown;
  redis::CallOptions options(options_.loop->now_ns() + options_.timeout_ns);
  options.delivery = &delivery;
  options.on_late = [sent](resp::Value reply) { ReportAll(sent, Report::kLate, reply.text); };
  const Result<resp::Value> reply =
      co_await options_.batcher->Run(call, metrics::StoreOp::kLease, std::move(options));
  if (reply) {
    ReportAll(sent, Report::kAnswered, reply->text);
  } else if (delivery == redis::Delivery::kNotCarriedOut) {
    ReportAll(sent, Report::kNotCarriedOut, {});
  } else {
    ReportAll(sent, Report::kUnknown, {});
  }
}

}  // namespace weir::shared_store
