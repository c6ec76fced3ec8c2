#include <benchmark/benchmark.h>

#include "identity/client_identity.h"

namespace weir::identity {
namespace {

void BM_ResolveApiKey(benchmark::State& state) {
  const IdHasher hasher = IdHasher::CreateRandom().value();
  IdentityCache cache(hasher);
  IdentityOptions options;
  options.client = {ParseClientSource("api_key").value()};
  const auto resolver = IdentityResolver::Create(std::move(options)).value();
  const IpAddress peer = *IpAddress::Parse("203.0.113.7");
  for (auto _ : state) {
    IdentityRequest request(*resolver, peer);
    request.Offer("Host", "api.example.com");
    request.Offer("Authorization", "Bearer sk-proj-0123456789abcdefghijklmnopqrstuvwxyz");
    request.Offer("Content-Type", "application/json");
    request.Offer("User-Agent", "OpenAI/Python 2.0.0");
    request.Offer("Content-Length", "341");
    benchmark::DoNotOptimize(resolver->Resolve(request, cache, 0));
  }
}
BENCHMARK(BM_ResolveApiKey);

void BM_ResolveBehindAProxy(benchmark::State& state) {
  const IdHasher hasher = IdHasher::CreateRandom().value();
  IdentityCache cache(hasher);
  IdentityOptions options;
  options.trusted_proxies = CidrSet::Create(std::vector<std::string>{"10.0.0.0/8"}).value();
  const auto resolver = IdentityResolver::Create(std::move(options)).value();
  const IpAddress peer = *IpAddress::Parse("10.0.0.1");
  for (auto _ : state) {
    IdentityRequest request(*resolver, peer);
    request.Offer("X-Forwarded-For", "192.0.2.1, 2001:db8:1:2::3, 10.0.0.9");
    benchmark::DoNotOptimize(resolver->Resolve(request, cache, 0));
  }
}
BENCHMARK(BM_ResolveBehindAProxy);

}  // namespace
}  // namespace weir::identity

BENCHMARK_MAIN();
