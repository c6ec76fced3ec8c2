#include "doors/call_attributes.h"

#include <algorithm>

#include "identity/client_identity.h"
#include "policy/policy.h"
#include "wire/uri/canonical_path.h"

namespace weir::doors {
namespace {

bool IsLower(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

CallAttributes& CallAttributes::Begin(decide::Worker& worker) {
  worker_ = &worker;
  names_ = &worker.policy().attributes();
  attributes_ = {};
  client_hashed_ = false;
  return *this;
}

Result<void> CallAttributes::Set(std::string_view name, std::string_view value) {
  const Result<int> index = names_->Find(name);
  if (!index) return std::unexpected(index.error());
  switch (*index) {
    case policy::kUnusedAttribute:
      return {};
    case policy::kClientAttribute:
      if (client_hashed_)
        return InvalidArgument("attributes.client: not together with attributes.api_key");
      break;
    case policy::kIpAttribute: {
      const std::optional<identity::IpAddress> address = identity::IpAddress::ParseWithPort(value);
      if (!address) return InvalidArgument("attributes.ip: must be an IPv4 or IPv6 address");
      SetAddress(*address);
      return {};
    }
    case policy::kPathAttribute:
      return SetPath(value);
    case policy::kHostAttribute:
      SetHost(value);
      return {};
    default:
      break;
  }
  attributes_.Set(*index, value);
  return {};
}

Result<void> CallAttributes::SetApiKey(std::string_view api_key) {
  if (api_key.empty()) return InvalidArgument("attributes.api_key: must not be empty");
  if (attributes_.Has(policy::kClientAttribute)) {
    return InvalidArgument("attributes.api_key: not together with attributes.client");
  }
  client_ = worker_->ApiKeyId(api_key);
  client_hashed_ = true;
  attributes_.Set(policy::kClientAttribute, client_.view());
  return {};
}

void CallAttributes::SetAddress(identity::IpAddress address) {
  ip_ = address.Grouped(worker_->identity().options().ipv6_prefix);
  attributes_.Set(policy::kIpAttribute, ip_.view());
  attributes_.SetAddress(address.bits());
}

Result<void> CallAttributes::SetPath(std::string_view path) {
  const uri::CanonicalOutcome outcome = uri::CanonicalPath(path.substr(0, path.find('?')), path_);
  if (!outcome.ok()) return InvalidArgument(std::string("attributes.path: ") + outcome.error);
  attributes_.Set(policy::kPathAttribute, uri::WithoutTrailingSlash(outcome.path));
  return {};
}

void CallAttributes::SetHost(std::string_view host) {
  const size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos &&
                        host.find(']', colon) == std::string_view::npos &&
                        (host.find(':') == colon || host.starts_with('['));
  if (has_port) host = host.substr(0, colon);
  if (host.ends_with('.')) host.remove_suffix(1);  // The same name, written as an absolute one.
  if (!IsLower(host)) {
    host_.assign(host);
    for (char& c : host_) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    host = host_;
  }
  attributes_.Set(policy::kHostAttribute, host);
}

}  // namespace weir::doors
