#include "doors/admin/admin.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "base/suggest.h"
#include "doors/admin/reload_errors.h"
#include "doors/answer.h"
#include "doors/check_api/decision_json.h"
#include "policy/describe.h"
#include "wire/json/writer.h"
#include "wire/uri/query_params.h"

namespace weir::doors {
namespace {

constexpr Endpoint kEndpoints[] = {{"POST", "/admin/reload"},
                                   {"POST", "/admin/reset"},
                                   {"GET, HEAD", "/admin/state"},
                                   {"GET, HEAD", "/admin/top"}};
constexpr int kTopMax = 1000;

const policy::Secret& TokenOf(const policy::Policy& policy) {
  static const policy::Secret kNone;
  return policy.config().listen.admin ? policy.config().listen.admin->token : kNone;
}

void AppendNames(json::Writer& writer, std::string_view key,
                 const std::vector<std::string>& names) {
  writer.Key(key).BeginArray();
  for (const std::string& name : names) writer.String(name);
  writer.EndArray();
}

void AppendPlan(const policy::ReloadPlan& plan, wire::Buffer& out) {
  json::Writer writer(out);
  writer.BeginObject().Key("reloaded").Bool(true);
  AppendNames(writer, "added", plan.added);
  AppendNames(writer, "removed", plan.removed);
  AppendNames(writer, "rerated", plan.rerated);
  AppendNames(writer, "restarted", plan.restarted);
  AppendNames(writer, "warnings", plan.warnings);
  writer.EndObject();
}

void AppendReloadErrors(std::string_view text, wire::Buffer& out) {
  json::Writer writer(out);
  writer.BeginObject().Key("error").BeginObject();
  writer.Key("code").String("invalid_configuration");
  writer.Key("message").String("the configuration is wrong; the running policy stays");
  writer.Key("errors").BeginArray();
  for (const ReloadError& error : SplitReloadErrors(text)) {
    writer.BeginObject().Key("file").String(error.file).Key("line").Int(error.line);
    writer.Key("column").Int(error.column).Key("message").String(error.message).EndObject();
  }
  writer.EndArray().EndObject().EndObject();
}

void AppendState(const decide::LimitState& state, wire::Buffer& out) {
  json::Writer writer(out);
  writer.BeginObject()
      .Key("name")
      .String(state.limit->name)
      .Key("unit")
      .String(JsonUnitName(state.limit->unit));
  writer.Key("rate")
      .String(state.variant->rate_text)
      .Key("shadow")
      .Bool(state.limit->enforce == policy::Enforce::kShadow);
  writer.Key("unlimited").Bool(state.variant->unlimited);
  if (state.variant->unlimited) {
    writer.Key("quota").Null().Key("remaining").Null().Key("reset_after_ms").Null();
  } else {
    writer.Key("quota")
        .Int(state.quota)
        .Key("remaining")
        .Int(state.step.remaining)
        .Key("reset_after_ms");
    AppendMilliseconds(state.step.reset_after_ns, out);
  }
  out.Append('}');
}

void FinishReset(const net::HttpRequest& request, std::string_view limit, const Result<void>& done,
                 http1::ResponseWriter& answer) {
  if (!done) return AnswerError(request, done.error(), answer);
  wire::Buffer body;
  json::Writer(body).BeginObject().Key("reset").String(limit).EndObject();
  AnswerJson(request, 200, body.View(), answer);
}

void FinishState(const net::HttpRequest& request, std::span<const decide::LimitState> states,
                 http1::ResponseWriter& answer) {
  wire::Buffer body;
  body.Append(R"({"limits":[)");
  bool first = true;
  for (const decide::LimitState& state : states) {
    if (!first) body.Append(',');
    first = false;
    AppendState(state, body);
  }
  body.Append("]}");
  AnswerJson(request, 200, body.View(), answer);
}

// True after a 400 for a query that names something twice.
bool RefusesDoubledParam(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  const std::string twice = uri::DoubledQueryParam(request.head.query);
  if (twice.empty()) return false;
  AnswerError(request, 400, "invalid_argument", twice + ": comes twice", answer);
  return true;
}

Result<void> KnownLimit(const policy::Policy& policy, std::string_view name) {
  if (policy.FindLimit(name) != nullptr) return {};
  std::vector<std::string_view> names;
  for (const policy::Limit& limit : policy.limits()) names.push_back(limit.name);
  return MakeError(ErrorCode::kNotFound,
                   "limit: there is none of that name" + base::DidYouMean(name, names));
}

std::optional<int> ParseCount(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > kTopMax)
    return std::nullopt;
  return count;
}

}  // namespace

Admin::Admin(decide::Worker& worker, ReloadFunction reload)
    : worker_(worker), reload_(std::move(reload)) {}

void Admin::Answer(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  if (!MayAsk(request, TokenOf(worker_.policy()))) {
    return AnswerError(request, 401, "unauthenticated",
                       "Authorization: Bearer with this door's token is required", answer);
  }
  const http1::RequestHead& head = request.head;
  const bool post = head.method_id == http1::Method::kPost;
  if (head.path == "/admin/reload" && post) return AnswerReload(request, answer);
  if (head.path == "/admin/reset" && post) return AnswerReset(request, answer);
  if (head.path == "/admin/state" && IsGet(head)) return AnswerState(request, answer);
  if (head.path == "/admin/top" && IsGet(head)) return AnswerTop(request, answer);
  for (const Endpoint& endpoint : kEndpoints) {
    if (endpoint.path == head.path) return AnswerNoSuchMethod(request, kEndpoints, answer);
  }
  AnswerNoSuchPath(request, kEndpoints, answer);
}

void Admin::AnswerReload(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  const Result<policy::ReloadPlan> plan = reload_();
  wire::Buffer body;
  if (plan) {
    AppendPlan(*plan, body);
    return AnswerJson(request, 200, body.View(), answer);
  }
  if (plan.error().code != ErrorCode::kInvalidArgument)
    return AnswerError(request, plan.error(), answer);
  AppendReloadErrors(plan.error().message, body);
  AnswerJson(request, 422, body.View(), answer);
}

std::optional<std::string> Admin::ReadReset(const net::HttpRequest& request,
                                            http1::ResponseWriter& answer) {
  json::ResetRequest reset;
  if (!parser_.ParseReset(request.body, reset)) {
    AnswerError(request, 400, "invalid_argument", parser_.error(), answer);
    return std::nullopt;
  }
  call_.Begin(worker_);
  Result<void> done;
  given_.clear();
  by_descriptor_ = reset.by_descriptor;
  for (const json::NameValue& given : reset.attributes) {
    if (by_descriptor_) {
      given_.emplace_back(given.name, given.value);
    } else if (done) {
      done = call_.Set(given.name, given.value);
    }
  }
  ViewEntries();
  if (done && reset.api_key) done = call_.SetApiKey(*reset.api_key);
  if (done) done = KnownLimit(worker_.policy(), reset.limit);
  if (done) return std::string(reset.limit);
  AnswerError(request, done.error(), answer);
  return std::nullopt;
}

void Admin::AnswerReset(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  const std::optional<std::string> limit = ReadReset(request, answer);
  if (!limit) return;
  const core::Now now = worker_.engine().NowAt(request.now_ns, request.wall_ns);
  FinishReset(request, *limit,
              by_descriptor_ ? worker_.ResetDescriptor(*limit, entries_, now)
                             : worker_.Reset(*limit, call_.attributes(), now),
              answer);
}

void Admin::ViewEntries() {
  entries_.clear();
  if (!by_descriptor_) return;
  for (const auto& [key, value] : given_) entries_.push_back({key, value});
}

bool Admin::ReadState(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  given_.clear();
  uri::ForEachQueryParam(request.head.query, [&](std::string_view name, std::string_view value) {
    given_.emplace_back(name, value);
  });
  if (RefusesDoubledParam(request, answer)) return false;
  by_descriptor_ = TakeDomain();
  ViewEntries();
  if (by_descriptor_) return true;
  call_.Begin(worker_);
  for (const auto& [name, value] : given_) {
    const Result<void> set = call_.Set(name, value);
    if (set) continue;
    AnswerError(request, set.error(), answer);
    return false;
  }
  return true;
}

// Whether the query is about a descriptor: it names a domain, which is no attribute, and the
// entries.
bool Admin::TakeDomain() {
  if (worker_.policy().attributes().Find("domain")) return false;
  const auto domain =
      std::ranges::find(given_, "domain", &std::pair<std::string, std::string>::first);
  if (domain == given_.end()) return false;
  domain_ = domain->second;
  given_.erase(domain);
  return true;
}

void Admin::AnswerState(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  if (!ReadState(request, answer)) return;
  const core::Now now = worker_.engine().NowAt(request.now_ns, request.wall_ns);
  FinishState(request,
              by_descriptor_ ? worker_.DescriptorState(domain_, entries_, now)
                             : worker_.State(call_.attributes(), now),
              answer);
}

Task<void> Admin::AnswerLater(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  const http1::RequestHead& head = request.head;
  const bool may_ask = MayAsk(request, TokenOf(worker_.policy()));
  if (may_ask && head.path == "/admin/reset" && head.method_id == http1::Method::kPost) {
    const std::optional<std::string> limit = ReadReset(request, answer);
    if (!limit) co_return;
    const core::Now now = worker_.engine().NowAt(request.now_ns, request.wall_ns);
    Result<void> done;
    if (by_descriptor_) {
      done = co_await worker_.ResetDescriptorShared(*limit, entries_, now);
    } else {
      done = co_await worker_.ResetShared(*limit, call_.attributes(), now);
    }
    FinishReset(request, *limit, done, answer);
    co_return;
  }
  if (may_ask && head.path == "/admin/state" && IsGet(head)) {
    if (!ReadState(request, answer)) co_return;
    const core::Now now = worker_.engine().NowAt(request.now_ns, request.wall_ns);
    std::vector<decide::LimitState> states;
    if (by_descriptor_) {
      states = co_await worker_.DescriptorStateShared(domain_, entries_, now);
    } else {
      states = co_await worker_.StateShared(call_.attributes(), now);
    }
    FinishState(request, states, answer);
    co_return;
  }
  Answer(request, answer);
}

void Admin::AnswerTop(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  if (RefusesDoubledParam(request, answer)) return;
  std::string scratch;
  const std::string_view by =
      uri::FindQueryParam(request.head.query, "by", scratch).value_or("denied");
  const bool denied = by == "denied";
  if (!denied && by != "allowed")
    return AnswerError(request, 400, "invalid_argument", "by: must be denied or allowed", answer);
  std::string count_scratch;
  const std::optional<int> n =
      ParseCount(uri::FindQueryParam(request.head.query, "n", count_scratch).value_or("20"));
  if (!n)
    return AnswerError(request, 400, "invalid_argument", "n: must be a whole number from 1 to 1000",
                       answer);
  using By = metrics::HotKeys::By;
  const std::vector<metrics::TopClient> top = worker_.engine().metrics().hot_keys().Top(
      denied ? By::kDenied : By::kAllowed, static_cast<size_t>(*n));
  wire::Buffer body;
  json::Writer writer(body);
  writer.BeginObject().Key("by").String(denied ? "denied" : "allowed").Key("clients").BeginArray();
  for (const metrics::TopClient& client : top) {
    writer.BeginObject().Key("client").String(client.client);
    writer.Key("count")
        .Int(static_cast<int64_t>(client.count))
        .Key("error")
        .Int(static_cast<int64_t>(client.error));
    writer.EndObject();
  }
  writer.EndArray().EndObject();
  AnswerJson(request, 200, body.View(), answer);
}

}  // namespace weir::doors
