// Limits calls inside a program, without a server: three calls a minute for each client.
#include <chrono>
#include <cstdio>

#include "weir/limiter.h"

int main() {
  auto limiter = weir::Limiter::FromYaml(R"(
limits:
  - {name: per-client, per: [client], rate: 3/min}
)");
  if (!limiter) {
    std::fprintf(stderr, "%s\n", limiter.error().message.c_str());
    return 1;
  }
  int allowed = 0;
  for (int call = 0; call < 5; ++call) {
    auto decision = (*limiter)->Check({{"client", "alice"}}, {.requests = 1});
    if (!decision) {
      std::fprintf(stderr, "%s\n", decision.error().message.c_str());
      return 1;
    }
    std::printf("call %d: %s\n", call + 1, decision->allowed ? "allowed" : "denied");
    allowed += decision->allowed ? 1 : 0;
  }
  return allowed == 3 ? 0 : 1;
}
