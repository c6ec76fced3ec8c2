#include <fmt/core.h>
#include <simdjson.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/http_call.h"
#include "wire/buffer.h"
#include "wire/json/writer.h"

namespace weir::cli {
namespace {

struct CheckArguments {
  std::string server;
  std::string token;
  std::string ca_file;
  std::vector<std::string> pairs;
  std::vector<std::string> costs;
  double timeout_s = 5;
  bool peek = false;
  bool json = false;
};

// {"attributes":{...},"cost":{...},"peek":...}
Result<std::string> RenderCheck(const CheckArguments& arguments) {
  wire::Buffer out;
  json::Writer json(out);
  json.BeginObject().Key("attributes").BeginObject();
  for (const std::string& pair : arguments.pairs) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return InvalidArgument("\"" + pair +
                             "\": an attribute and its value are meant, as in client=alice");
    }
    json.EscapedKey(std::string_view(pair).substr(0, equals))
        .String(std::string_view(pair).substr(equals + 1));
  }
  json.EndObject();
  if (!arguments.costs.empty()) {
    json.Key("cost").BeginObject();
    for (const std::string& cost : arguments.costs) {
      const size_t equals = cost.find('=');
      const std::string unit = equals == std::string::npos ? "requests" : cost.substr(0, equals);
      const std::string amount = equals == std::string::npos ? cost : cost.substr(equals + 1);
      if (amount.empty() || amount.find_first_not_of("0123456789.") != std::string::npos) {
        return InvalidArgument("--cost " + cost +
                               ": a number, or a unit and a number as in tokens=500, is meant");
      }
      json.EscapedKey(unit).Raw(amount);
    }
    json.EndObject();
  }
  if (arguments.peek) json.Key("peek").Bool(true);
  json.EndObject();
  return std::string(out.View());
}

std::string Seconds(int64_t ms) { return fmt::format("{}.{:03} s", ms / 1000, ms % 1000); }

// One line for the decision, one for each limit.
void Print(const simdjson::dom::element& answer, bool allowed) {
  fmt::print("{}", allowed ? "allowed" : "denied");
  simdjson::dom::array denied_by;
  if (!allowed && answer["denied_by"].get(denied_by) == simdjson::SUCCESS) {
    const char* before = " by ";
    for (const simdjson::dom::element name : denied_by) {
      fmt::print("{}{}", before, name.get_string().value_unsafe());
      before = ", ";
    }
  }
  int64_t retry_after_ms = 0;
  if (!allowed) {
    if (answer["retry_after_ms"].get(retry_after_ms) == simdjson::SUCCESS) {
      fmt::print("; retry after {}", Seconds(retry_after_ms));
    } else {
      fmt::print("; waiting does not help");
    }
  }
  fmt::print("\n");
  simdjson::dom::array limits;
  if (answer["limits"].get(limits) != simdjson::SUCCESS) return;
  for (const simdjson::dom::element limit : limits) {
    std::string_view name, unit;
    int64_t quota = 0, remaining = 0;
    bool shadow = false;
    if (limit["name"].get(name) != simdjson::SUCCESS ||
        limit["unit"].get(unit) != simdjson::SUCCESS ||
        limit["quota"].get(quota) != simdjson::SUCCESS ||
        limit["remaining"].get(remaining) != simdjson::SUCCESS) {
      continue;
    }
    if (limit["shadow"].get(shadow) != simdjson::SUCCESS) shadow = false;
    fmt::print("  {}: {} of {} {} left{}\n", name, remaining, quota, unit,
               shadow ? " (shadow)" : "");
  }
}

int Fail(std::string_view message) {
  std::cerr << "weir check: " << message << "\n";
  return kExitUsage;
}

int Check(const CheckArguments& arguments) {
  const Result<ServerUrl> url = ServerUrl::Parse(arguments.server);
  if (!url) return Fail("--server " + url.error().message);
  constexpr std::string_view kPath = "/v1/check";
  if (url->base_path.ends_with(kPath)) {
    const std::string_view server = std::string_view(arguments.server);
    return Fail(fmt::format("--server {}: leave the path out, it is added: --server {}", server,
                            server.substr(0, server.rfind(kPath))));
  }
  Result<std::string> body = RenderCheck(arguments);
  if (!body) return Fail(body.error().message);
  const Result<HttpAnswer> answer = CallHttp(*url,
                                             {.path = "/v1/check",
                                              .body = std::move(*body),
                                              .token = arguments.token,
                                              .ca_file = arguments.ca_file},
                                             static_cast<int64_t>(arguments.timeout_s * 1e9));
  if (!answer) return Fail(arguments.server + ": " + answer.error().message);
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  if (parser.parse(answer->body).get(document) != simdjson::SUCCESS) {
    return Fail(fmt::format("{}: status {}, and no JSON: is this a weir api door?",
                            arguments.server, answer->status));
  }
  bool allowed = false;
  if (document["allowed"].get(allowed) != simdjson::SUCCESS) {
    std::string_view message;
    if (document["error"]["message"].get(message) != simdjson::SUCCESS)
      message = "no decision in the answer";
    return Fail(fmt::format("status {}: {}", answer->status, message));
  }
  if (arguments.json) {
    fmt::print("{}\n", answer->body);
  } else {
    Print(document, allowed);
  }
  return allowed ? kExitOk : kExitFailure;
}

}  // namespace

void AddCheck(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("check", "Ask a running server for one decision");
  command->footer(
      "Exit code: 0 allowed, 1 denied, 2 no decision.\n\n"
      "Examples:\n"
      "  weir check --server http://127.0.0.1:8081 client=alice path=/v1/models\n"
      "  weir check --server unix:/run/weir.sock --cost 1 --cost tokens=500 client=alice model=m\n"
      "  weir check --server http://127.0.0.1:8081 --peek client=alice && send-it");
  auto arguments = std::make_shared<CheckArguments>();
  command->add_option("--server", arguments->server, "The api door: http://, https:// or unix:")
      ->required();
  command->add_option("--token", arguments->token, "The door's token")->envname("WEIR_TOKEN");
  command->add_option("--ca", arguments->ca_file,
                      "PEM of the authorities to trust for https; else the system's");
  command
      ->add_option("--cost", arguments->costs, "N requests, or UNIT=N; as often as there are units")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--peek", arguments->peek, "Ask whether it would pass, and change nothing");
  command->add_flag("--json", arguments->json, "Print the server's answer as it is");
  command->add_option("--timeout", arguments->timeout_s, "Seconds to wait for the answer")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  command->add_option("ATTRIBUTE=VALUE", arguments->pairs, "What is known of the call");
  command->callback([&exit_code, arguments] { exit_code = Check(*arguments); });
}

}  // namespace weir::cli
