#include "redis/client_options.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace weir::redis {
namespace {

constexpr int kServerPort = 6379;
constexpr int kSentinelPort = 26379;
constexpr size_t kAddressesMax = 64;
constexpr size_t kUnixPathBytesMax = 107;
constexpr std::string_view kMeant =
    "; meant is redis://, rediss://, unix://, redis+sentinel://, rediss+sentinel://, "
    "redis+cluster:// or rediss+cluster://";

// No message repeats any of the URL: a character out of place can make part of a password look like
// a host or a port.
std::unexpected<Error> Wrong(std::string_view what) {
  return InvalidArgument("url: " + std::string(what));
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size() || HexDigit(text[i + 1]) < 0 || HexDigit(text[i + 2]) < 0) {
      return std::nullopt;
    }
    decoded.push_back(static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2])));
    i += 2;
  }
  return decoded;
}

std::optional<int> ParseNumber(std::string_view text, int most) {
  int number = 0;
  const auto [stop, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || bad != std::errc() || stop != text.data() + text.size() || number < 0 ||
      number > most) {
    return std::nullopt;
  }
  return number;
}

// What stands before the first of `marks`, taken off the front of `text`.
std::string_view TakeUntil(std::string_view& text, std::string_view marks) {
  const std::string_view part = text.substr(0, text.find_first_of(marks));
  text.remove_prefix(part.size());
  return part;
}

Result<void> ReadScheme(std::string_view scheme, ClientOptions& options, bool& is_unix) {
  std::string_view server = scheme;
  std::string_view kind;
  if (const size_t plus = scheme.find('+'); plus != std::string_view::npos) {
    server = scheme.substr(0, plus);
    kind = scheme.substr(plus + 1);
  }
  is_unix = scheme == "unix";
  options.tls.enabled = server == "rediss";
  if (kind == "sentinel") options.kind = ClientOptions::Kind::kSentinel;
  if (kind == "cluster") options.kind = ClientOptions::Kind::kCluster;
  const bool known_kind = scheme == server || kind == "sentinel" || kind == "cluster";
  if (is_unix || ((server == "redis" || server == "rediss") && known_kind)) return {};
  return Wrong("the scheme is not known" + std::string(kMeant));
}

Result<void> ReadCredentials(std::string_view text, Credentials& credentials) {
  const size_t colon = text.find(':');
  const std::optional<std::string> user = PercentDecode(text.substr(0, colon));
  const std::optional<std::string> password =
      PercentDecode(colon == std::string_view::npos ? "" : text.substr(colon + 1));
  if (!user) return Wrong("the user holds a % that begins no escape; write % as %25");
  if (!password) return Wrong("the password holds a % that begins no escape; write % as %25");
  credentials = {*user, *password};
  return {};
}

Result<Address> ReadAddress(std::string_view text, int default_port) {
  Address address{"", default_port};
  std::string_view port_text;
  bool has_port = false;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return Wrong("the host: a [ without its ]");
    address.host = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    in6_addr parsed;
    if (inet_pton(AF_INET6, address.host.c_str(), &parsed) != 1) {
      return Wrong("the host: what stands in [ ] must be an IPv6 address");
    }
    has_port = rest.starts_with(':');
    if (!rest.empty() && !has_port) return Wrong("the port must follow the host after a colon");
    port_text = has_port ? rest.substr(1) : rest;
  } else {
    const size_t colon = text.find(':');
    address.host = text.substr(0, colon);
    has_port = colon != std::string_view::npos;
    if (has_port) port_text = text.substr(colon + 1);
    if (port_text.find(':') != std::string_view::npos) {
      return Wrong("the host: an IPv6 address must stand in [ ]");
    }
  }
  if (address.host.empty()) return Wrong("the host is missing");
  if (address.host.find_first_of("%\" \\") != std::string::npos) {
    return Wrong("the host must be a name or an address");
  }
  if (has_port) {
    const std::optional<int> port = ParseNumber(port_text, 65535);
    if (!port || *port == 0) return Wrong("the port must be a number from 1 to 65535");
    address.port = *port;
  }
  return address;
}

Result<void> ReadAddresses(std::string_view list, ClientOptions& options) {
  const bool many = options.kind != ClientOptions::Kind::kStandalone;
  const int port = options.kind == ClientOptions::Kind::kSentinel ? kSentinelPort : kServerPort;
  for (;;) {
    Result<Address> address = ReadAddress(TakeUntil(list, ","), port);
    if (!address) return std::unexpected(address.error());
    options.addresses.push_back(std::move(*address));
    if (list.empty()) break;
    list.remove_prefix(1);
    if (!many) {
      return Wrong("several hosts need redis+sentinel:// or redis+cluster://");
    }
    if (options.addresses.size() == kAddressesMax) return Wrong("more than 64 hosts");
  }
  return {};
}

Result<void> ReadDatabase(std::string_view text, ClientOptions& options) {
  const std::optional<int> database = ParseNumber(text, 1'000'000);
  if (!database) return Wrong("the database must be a number from 0");
  options.database = *database;
  return {};
}

// "/DB", "/NAME", "/NAME/DB" or nothing, by kind.
Result<void> ReadPath(std::string_view path, ClientOptions& options) {
  if (path.starts_with('/')) path.remove_prefix(1);
  if (options.kind == ClientOptions::Kind::kSentinel) {
    const std::optional<std::string> name = PercentDecode(TakeUntil(path, "/"));
    if (!name || name->empty()) {
      return Wrong("the master's name is missing; meant is redis+sentinel://HOST,HOST/NAME");
    }
    options.master_name = *name;
    if (path.starts_with('/')) path.remove_prefix(1);
  }
  if (options.kind == ClientOptions::Kind::kCluster) {
    if (path.empty() || path == "0") return {};
    return Wrong("a Cluster has no databases, so nothing may follow its hosts");
  }
  return path.empty() ? Result<void>() : ReadDatabase(path, options);
}

Result<void> ReadUnix(std::string_view rest, ClientOptions& options) {
  std::string_view path = TakeUntil(rest, "?");
  const size_t slash = path.find('/');
  if (const size_t at = path.rfind('@', slash); at != std::string_view::npos) {
    if (auto read = ReadCredentials(path.substr(0, at), options.credentials); !read) return read;
    path.remove_prefix(at + 1);
  }
  const std::optional<std::string> decoded = PercentDecode(path);
  if (!decoded || !decoded->starts_with('/')) {
    return Wrong("the socket must be an absolute path; meant is unix:///run/redis.sock");
  }
  if (decoded->size() > kUnixPathBytesMax || decoded->find('\0') != std::string::npos) {
    return Wrong("the path of a unix socket has at most 107 bytes");
  }
  options.addresses.push_back({*decoded, 0});
  if (rest.empty()) return {};
  rest.remove_prefix(1);
  if (!rest.starts_with("db=")) return Wrong("the only parameter that unix:// takes is ?db=N");
  return ReadDatabase(rest.substr(3), options);
}

Result<void> ReadHosts(std::string_view rest, ClientOptions& options) {
  std::string_view authority = TakeUntil(rest, "/?");
  if (rest.find('@') != std::string_view::npos) {
    return Wrong("in the user and the password write / as %2F, ? as %3F and @ as %40");
  }
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    if (auto read = ReadCredentials(authority.substr(0, at), options.credentials); !read) {
      return read;
    }
    authority.remove_prefix(at + 1);
  }
  if (rest.find('?') != std::string_view::npos) {
    return Wrong("parameters (?…) are not known here; the configuration has keys for them");
  }
  if (auto read = ReadAddresses(authority, options); !read) return read;
  return ReadPath(rest, options);
}

Result<void> CheckPassword(const ClientOptions& options) {
  const bool secret = !options.credentials.password.empty();
  if (!secret || options.tls.enabled || options.insecure) return {};
  if (std::ranges::all_of(options.addresses, &Address::IsLocal)) return {};
  return Wrong("a password would cross the network unencrypted; use " +
               std::string(options.kind == ClientOptions::Kind::kStandalone ? "rediss://"
                           : options.kind == ClientOptions::Kind::kSentinel ? "rediss+sentinel://"
                                                                            : "rediss+cluster://") +
               ", or insecure: true");
}

}  // namespace

bool Address::IsLocal() const {
  if (is_unix() || host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string Address::ToString() const {
  if (is_unix()) return "unix:" + host;
  const std::string port_text = std::to_string(port);
  return host.find(':') != std::string::npos ? "[" + host + "]:" + port_text
                                             : host + ":" + port_text;
}

Result<ClientOptions> ParseUrl(std::string_view url, bool insecure) {
  ClientOptions options;
  options.insecure = insecure;
  if (std::ranges::any_of(url, [](char c) { return static_cast<unsigned char>(c) <= ' '; })) {
    return Wrong("it holds a blank or a control character");
  }
  const size_t colon = url.find("://");
  if (colon == std::string_view::npos) return Wrong("no scheme" + std::string(kMeant));
  bool is_unix = false;
  if (auto read = ReadScheme(url.substr(0, colon), options, is_unix); !read) {
    return std::unexpected(read.error());
  }
  const std::string_view rest = url.substr(colon + 3);
  if (rest.find('#') != std::string_view::npos) return Wrong("write # as %23");
  const Result<void> read = is_unix ? ReadUnix(rest, options) : ReadHosts(rest, options);
  if (!read) return std::unexpected(read.error());
  if (auto checked = CheckPassword(options); !checked) return std::unexpected(checked.error());
  return options;
}

std::string RedactedUrl(std::string_view url) {
  const size_t colon = url.find("://");
  if (colon == std::string_view::npos) return "(no url)";
  const std::string scheme(url.substr(0, colon + 3));
  if (!ParseUrl(url, /*insecure=*/true)) return scheme + "…";
  const std::string_view rest = url.substr(colon + 3);
  const size_t at = rest.substr(0, rest.find('/')).rfind('@');
  if (at == std::string_view::npos) return std::string(url);
  const std::string_view user = rest.substr(0, std::min(at, rest.find(':')));
  return scheme + std::string(user) + ":***" + std::string(rest.substr(at));
}

}  // namespace weir::redis
