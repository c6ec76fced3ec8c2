#include "net/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <cstddef>
#include <cstring>

namespace weir::net {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

std::unexpected<Error> Wrong(std::string_view text, std::string_view why) {
  return InvalidArgument(
      "\"" + std::string(text) + "\": " + std::string(why) +
      "; meant is HOST:PORT such as 127.0.0.1:8080 or [::1]:8080, or unix:/path");
}

}  // namespace

Result<Endpoint> Endpoint::Parse(std::string_view text) {
  Endpoint endpoint;
  if (text.starts_with(kUnixPrefix)) {
    const std::string_view path = text.substr(kUnixPrefix.size());
    auto& address = reinterpret_cast<sockaddr_un&>(endpoint.storage_);
    if (path.empty()) return Wrong(text, "no path follows unix:");
    if (path.size() >= sizeof(address.sun_path))
      return Wrong(text, "the path of a unix socket has at most 107 bytes");
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    endpoint.length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
    return endpoint;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Wrong(text, "no port");
  const std::string_view port_text = text.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, bad] =
      std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (port_text.empty() || bad != std::errc() || end != port_text.data() + port_text.size()) {
    return Wrong(text, "the port must be a number from 0 to 65535");
  }
  std::string host(text.substr(0, colon));
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    auto& address = reinterpret_cast<sockaddr_in6&>(endpoint.storage_);
    if (inet_pton(AF_INET6, host.c_str(), &address.sin6_addr) != 1)
      return Wrong(text, "not an IPv6 address");
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    endpoint.length_ = sizeof(sockaddr_in6);
    return endpoint;
  }
  if (host == "localhost") host = "127.0.0.1";
  auto& address = reinterpret_cast<sockaddr_in&>(endpoint.storage_);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
    return Wrong(text, "not an IP address");
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  endpoint.length_ = sizeof(sockaddr_in);
  return endpoint;
}

Endpoint Endpoint::FromSockaddr(const sockaddr* address, socklen_t length) {
  Endpoint endpoint;
  endpoint.length_ = std::min<socklen_t>(length, sizeof endpoint.storage_);
  std::memcpy(&endpoint.storage_, address, endpoint.length_);
  return endpoint;
}

int Endpoint::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(storage_).sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(storage_).sin6_port);
  return 0;
}

Endpoint Endpoint::WithPort(int port) const {
  Endpoint copy = *this;
  const auto wire_port = htons(static_cast<uint16_t>(port));
  if (family() == AF_INET) reinterpret_cast<sockaddr_in&>(copy.storage_).sin_port = wire_port;
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6&>(copy.storage_).sin6_port = wire_port;
  return copy;
}

std::string Endpoint::Host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage_).sin_addr, text, sizeof text);
  } else if (family() == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(storage_).sin6_addr, text,
              sizeof text);
  } else {
    return "unix";
  }
  return text;
}

std::string Endpoint::ToString() const {
  if (is_unix()) {
    const auto& address = reinterpret_cast<const sockaddr_un&>(storage_);
    const size_t header = offsetof(sockaddr_un, sun_path);
    if (length_ <= header) return "unix:";
    return std::string(kUnixPrefix) +
           std::string(address.sun_path, strnlen(address.sun_path, length_ - header));
  }
  const std::string port_text = std::to_string(port());
  return family() == AF_INET6 ? "[" + Host() + "]:" + port_text : Host() + ":" + port_text;
}

}  // namespace weir::net
