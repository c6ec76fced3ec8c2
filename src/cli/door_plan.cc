#include "cli/door_plan.h"

#include <array>
#include <optional>
#include <utility>

#include "cli/listen_endpoint.h"
#include "net/http_version.h"

namespace weir::cli {
namespace {

using Door = std::pair<metrics::Door, const std::optional<policy::DoorConfig>*>;

std::array<Door, 6> DoorsOf(const policy::ListenConfig& listen) {
  return {{{metrics::Door::kGateway, &listen.gateway},
           {metrics::Door::kApi, &listen.api},
           {metrics::Door::kAdmin, &listen.admin},
           {metrics::Door::kOps, &listen.ops},
           {metrics::Door::kResp, &listen.resp},
           {metrics::Door::kGrpc, &listen.grpc}}};
}

Result<std::shared_ptr<const net::TlsContext>> LoadTls(metrics::Door door,
                                                       const policy::TlsConfig& tls) {
  net::TlsContext::ServerOptions options{
      .cert_file = tls.cert, .key_file = tls.key, .client_ca_file = tls.client_ca, .alpn = {}};
  if (door == metrics::Door::kGrpc) {
    options.alpn = {std::string(net::kAlpnHttp2)};
  } else if (door != metrics::Door::kResp) {
    options.alpn = {std::string(net::kAlpnHttp2), std::string(net::kAlpnHttp1)};
  }
  return net::TlsContext::Server(options);
}

}  // namespace

Error Prefixed(metrics::Door door, const Error& error) {
  return {error.code, "listen." + std::string(metrics::DoorName(door)) + ": " + error.message};
}

Result<std::vector<DoorPlan>> PlanDoors(const policy::ListenConfig& listen) {
  std::vector<DoorPlan> plans;
  for (const auto& [door, config] : DoorsOf(listen)) {
    if (!config->has_value()) continue;
    Result<net::Endpoint> endpoint = ListenEndpoint((*config)->address);
    if (!endpoint) return std::unexpected(Prefixed(door, endpoint.error()));
    DoorPlan plan{.door = door, .endpoint = *endpoint};
    if (const std::optional<policy::TlsConfig>& tls = (*config)->tls; tls.has_value()) {
      Result<std::shared_ptr<const net::TlsContext>> loaded = LoadTls(door, *tls);
      if (!loaded) return std::unexpected(Prefixed(door, loaded.error()));
      plan.tls = std::move(*loaded);
    }
    plans.push_back(std::move(plan));
  }
  if (plans.empty()) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        "nothing to listen on: name a door under `listen`, as in `listen: {api: 127.0.0.1:8081}`");
  }
  return plans;
}

std::vector<std::string> CertificateFiles(const policy::ListenConfig& listen) {
  std::vector<std::string> files;
  for (const auto& [door, config] : DoorsOf(listen)) {
    if (!config->has_value() || !(*config)->tls) continue;
    const policy::TlsConfig& tls = *(*config)->tls;
    for (const std::string& file : {tls.cert, tls.key, tls.client_ca}) {
      if (!file.empty()) files.push_back(file);
    }
  }
  return files;
}

}  // namespace weir::cli
