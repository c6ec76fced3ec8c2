#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/mock_upstream/mock_server.h"
#include "cli/signals.h"
#include "net/listener.h"

namespace weir::cli {
namespace {

struct MockArguments {
  std::string listen = "127.0.0.1:8090";
  std::string cert_file;
  std::string key_file;
  std::vector<std::string> knobs;
};

int Fail(std::string_view message) {
  std::cerr << "weir mock-upstream: " << message << "\n";
  return kExitFailure;
}

int Serve(const MockArguments& arguments) {
  mock::Knobs defaults;
  for (const std::string& knob : arguments.knobs) {
    if (auto set = mock::SetKnob(defaults, knob); !set) {
      return Fail("--knob " + knob + ": " + set.error().message);
    }
  }
  const Result<net::Endpoint> endpoint = net::Endpoint::Parse(arguments.listen);
  if (!endpoint) return Fail("--listen " + endpoint.error().message);
  std::unique_ptr<net::TlsContext> tls;
  if (!arguments.cert_file.empty()) {
    Result<std::unique_ptr<net::TlsContext>> made =
        net::TlsContext::Server({.cert_file = arguments.cert_file, .key_file = arguments.key_file});
    if (!made) return Fail(made.error().message);
    tls = std::move(*made);
  }

  Signals::Block();
  const SystemClock clock;
  Result<std::unique_ptr<net::EventLoop>> loop = net::EventLoop::Create(clock);
  if (!loop) return Fail(loop.error().message);
  mock::MockServer server(**loop, defaults, tls.get());
  Result<std::unique_ptr<net::Listener>> listener = net::Listener::Open(
      **loop, *endpoint,
      [&](std::unique_ptr<net::Stream> stream) { server.Accept(std::move(stream)); });
  if (!listener) return Fail(listener.error().message);
  Result<std::unique_ptr<Signals>> signals = Signals::Watch(**loop, [&](int number) {
    if (number != SIGHUP) (*loop)->Stop();
  });
  if (!signals) return Fail(signals.error().message);
  std::cout << "listening upstream=" << (*listener)->endpoint().ToString() << std::endl;
  (*loop)->Run();
  // What lives on the loop goes before it; its tasks go with it, while the server is still there.
  signals->reset();
  listener->reset();
  loop->reset();
  return kExitOk;
}

}  // namespace

void AddMockUpstream(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("mock-upstream", "A stand-in for an AI API, for demonstrations and tests");
  command->footer(
      "Answers OpenAI's chat completions, responses, embeddings and models and Anthropic's "
      "messages, with and without\n"
      "streams and always with the same usage; /echo says what arrived, /ws echoes a WebSocket, "
      "/mock/stats counts.\n\n"
      "Knobs set how all calls are answered; a call overrides them by headers (x-mock-latency-ms: "
      "100) or its query\n"
      "(?x-mock-latency-ms=100): latency-ms pace-ms events status body-bytes prompt-tokens "
      "completion-tokens\n"
      "missing-usage abort-after hang-after endless-bytes close chunked headers trailers.\n\n"
      "Examples:\n"
      "  weir mock-upstream --listen 127.0.0.1:8090\n"
      "  weir mock-upstream --listen 127.0.0.1:0 --knob latency-ms=200 --knob pace-ms=20 --knob "
      "events=50");
  auto arguments = std::make_shared<MockArguments>();
  command
      ->add_option("--listen", arguments->listen, "ADDRESS:PORT, port 0 to pick one, or unix:PATH")
      ->capture_default_str();
  command->add_option("--knob", arguments->knobs, "NAME=VALUE, as often as needed")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  CLI::Option* cert = command->add_option("--cert", arguments->cert_file, "PEM chain: serve TLS");
  CLI::Option* key = command->add_option("--key", arguments->key_file, "PEM key of the chain");
  cert->needs(key);
  key->needs(cert);
  command->callback([&exit_code, arguments] { exit_code = Serve(*arguments); });
}

}  // namespace weir::cli
