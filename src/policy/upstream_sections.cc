// `upstreams` and `routes`: where the gateway sends what it lets through.
#include <algorithm>

#include "base/ip_text.h"
#include "base/suggest.h"
#include "policy/matcher.h"
#include "policy/rate_text.h"
#include "policy/sections.h"

namespace weir::policy {
namespace {

constexpr size_t kMaxUrls = 64;

std::string LowerCase(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

bool IsFieldName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

// Splits "host:port", "[v6]:port" or "host"; false when it is none of them.
bool ReadAuthority(std::string_view authority, UpstreamUrl& url) {
  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) return false;
    url.host = authority.substr(1, end - 1);
    authority.remove_prefix(end + 1);
    if (!base::ParseIp(url.host)) return false;
    if (!authority.empty() && authority.front() != ':') return false;
    port = authority.empty() ? authority : authority.substr(1);
    if (!authority.empty() && port.empty()) return false;
  } else {
    const size_t colon = authority.find(':');
    url.host = LowerCase(std::string(authority.substr(0, colon)));
    if (colon != std::string_view::npos) {
      port = authority.substr(colon + 1);
      if (port.empty()) return false;
    }
  }
  if (url.host.empty() || url.host.size() > 253) return false;
  if (port.empty()) return true;
  const auto number = ParseWholeNumber(port, "port");
  if (!number || *number < 1 || *number > 65535) return false;
  url.port = static_cast<uint16_t>(*number);
  return true;
}

// A URL may hold a password by mistake, so no message repeats it.
std::expected<UpstreamUrl, std::string> ParseUrl(std::string_view text) {
  UpstreamUrl url;
  if (text.starts_with("https://")) {
    url.tls = true;
    url.port = 443;
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    url.port = 80;
    text.remove_prefix(7);
  } else {
    return std::unexpected("an upstream's URL begins with `http://` or `https://`");
  }
  const size_t slash = std::min(text.find_first_of("/?#"), text.size());
  const std::string_view authority = text.substr(0, slash);
  if (authority.find('@') != std::string_view::npos) {
    return std::unexpected(
        "credentials do not belong into a URL; put them into `headers` of the upstream");
  }
  if (authority.find_first_of(" \t\r\n\\") != std::string_view::npos ||
      !ReadAuthority(authority, url)) {
    return std::unexpected("write the URL as `https://HOST`, `https://HOST:PORT` or with a path");
  }
  std::string_view path = text.substr(slash);
  if (path.find_first_of("?# \t\r\n") != std::string_view::npos) {
    return std::unexpected("an upstream's URL has no query or fragment");
  }
  while (path.ends_with('/')) path.remove_suffix(1);
  url.base_path = path;
  return url;
}

void ReadUrls(YamlReader& reader, const YamlNode& node, const std::string& what,
              UpstreamConfig& upstream) {
  const auto items = reader.List(node, what);
  if (!items) return;
  if (items->empty() || items->size() > kMaxUrls) {
    reader.Fail(node.mark, what + " must hold 1 to 64 URLs");
    return;
  }
  for (const YamlNode* item : *items) {
    const auto text = reader.Text(*item, what);
    if (!text) continue;
    auto url = ParseUrl(*text);
    if (url) {
      upstream.urls.push_back(std::move(*url));
    } else {
      reader.Fail(item->mark, what + ": " + url.error());
    }
  }
}

void ReadUpstreamHeaders(YamlReader& reader, const YamlNode& node, const std::string& what,
                         UpstreamConfig& upstream) {
  if (node.kind != YamlNode::Kind::kMap) {
    reader.Fail(node.mark, what + " must be a map of header names to values");
    return;
  }
  for (const YamlEntry& entry : node.entries) {
    const std::string name = LowerCase(entry.key->text);
    if (!IsFieldName(name)) {
      reader.Fail(entry.key->mark, what + ": `" + entry.key->text + "` is no header name");
      continue;
    }
    static constexpr std::string_view kOurs[] = {
        "host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer"};
    if (std::ranges::find(kOurs, name) != std::end(kOurs)) {
      reader.Fail(entry.key->mark, what + ": `" + name +
                                       "` belongs to the connection itself and "
                                       "cannot be set");
      continue;
    }
    if (std::ranges::find(upstream.headers, name, &UpstreamHeader::name) !=
        upstream.headers.end()) {
      reader.Fail(entry.key->mark, what + ": header `" + name + "` is given twice");
      continue;
    }
    auto value = reader.ReadSecret(*entry.value, what + "." + name);
    if (!value) continue;
    const bool clean = std::ranges::all_of(value->Reveal(), [](char c) {
      return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
    });
    if (!clean) {
      reader.Fail(entry.value->mark,
                  what + "." + name + ": a header's value holds no control characters");
      continue;
    }
    upstream.headers.push_back({name, std::move(*value)});
  }
}

void ReadUpstreamTls(YamlReader& reader, const YamlNode& node, const std::string& what,
                     UpstreamConfig& upstream) {
  const MapReader map(reader, node, what, {"ca", "server_name"});
  if (const YamlNode* value = map.Find("ca")) {
    upstream.tls_ca = reader.Path(*value, what + ".ca").value_or("");
  }
  if (const YamlNode* value = map.Find("server_name")) {
    upstream.tls_server_name = reader.Text(*value, what + ".server_name").value_or("");
  }
}

void ReadRouteMatch(YamlReader& reader, const YamlNode& node, const std::string& what, Route& route,
                    bool& ok) {
  const MapReader map(reader, node, what, {"path", "method", "host"});
  if (const YamlNode* value = map.Require("path")) {
    const auto text = reader.Text(*value, what + ".path");
    auto path = text ? ParsePathPattern(*text) : Result<PathPattern>(PathPattern());
    if (!path) reader.Fail(value->mark, what + "." + path.error().message);
    ok = ok && text && path;
    if (path) route.path = std::move(*path);
  } else {
    ok = false;
  }
  if (const YamlNode* value = map.Find("method")) {
    const auto items = reader.List(*value, what + ".method", /*or_one=*/true);
    for (const YamlNode* item : items.value_or(std::vector<const YamlNode*>{})) {
      const auto text = reader.Text(*item, what + ".method");
      if (!text) continue;
      const auto pattern = ParsePattern(kMethodAttribute, *text);
      if (pattern && pattern->kind == Pattern::Kind::kExact) {
        route.methods.push_back(*text);
      } else {
        reader.Fail(item->mark,
                    what + ".method: `" + *text + "`: methods are upper-case words such as `POST`");
      }
    }
  }
  if (const YamlNode* value = map.Find("host")) {
    const auto text = reader.Text(*value, what + ".host");
    const auto pattern = text ? ParsePattern(kHostAttribute, *text) : Result<Pattern>(Pattern());
    if (!pattern) reader.Fail(value->mark, what + ": " + pattern.error().message);
    if (text && *text != "*") route.host = LowerCase(*text);
  }
}

}  // namespace

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

void ReadUpstream(YamlReader& reader, const YamlNode& node, const std::string& what,
                  std::vector<UpstreamConfig>& upstreams) {
  const MapReader map(reader, node, what, {"name", "urls", "headers", "tls"});
  UpstreamConfig upstream;
  const YamlNode* name = map.Require("name");
  const YamlNode* urls = map.Require("urls");
  if (name != nullptr) {
    upstream.name = reader.Text(*name, what + ".name").value_or("");
    if (!IsName(upstream.name)) {
      reader.Fail(name->mark, what + ".name: a name has 1 to 64 letters, digits, `_`, `.` or `-`");
    }
  }
  if (urls != nullptr) ReadUrls(reader, *urls, what + ".urls", upstream);
  if (const YamlNode* value = map.Find("headers")) {
    ReadUpstreamHeaders(reader, *value, what + ".headers", upstream);
  }
  if (const YamlNode* value = map.Find("tls")) {
    ReadUpstreamTls(reader, *value, what + ".tls", upstream);
  }
  if (map.ok()) upstreams.push_back(std::move(upstream));
}

void ReadRoute(YamlReader& reader, const YamlNode& node, const std::string& what,
               const std::vector<UpstreamConfig>& upstreams, std::vector<Route>& routes) {
  const MapReader map(reader, node, what, {"match", "upstream", "rewrite"});
  Route route{.place = reader.PlaceOf(node.mark)};
  bool ok = map.ok();
  if (const YamlNode* value = map.Require("match")) {
    ReadRouteMatch(reader, *value, what + ".match", route, ok);
  } else {
    ok = false;
  }
  if (const YamlNode* value = map.Require("upstream")) {
    const auto name = reader.Text(*value, what + ".upstream");
    const auto known = std::ranges::find(upstreams, name.value_or(""), &UpstreamConfig::name);
    route.upstream = static_cast<int>(known - upstreams.begin());
    if (name && known == upstreams.end()) {
      std::vector<std::string_view> names;
      for (const UpstreamConfig& upstream : upstreams) names.push_back(upstream.name);
      reader.Fail(value->mark, what + ".upstream: no upstream is named `" + *name + "`" +
                                   base::DidYouMean(*name, names));
    }
    ok = ok && known != upstreams.end();
  }
  if (const YamlNode* value = map.Find("rewrite")) {
    const MapReader rewrite(reader, *value, what + ".rewrite", {"prefix"});
    if (const YamlNode* prefix = rewrite.Require("prefix")) {
      auto text = reader.Text(*prefix, what + ".rewrite.prefix");
      if (text && (!text->starts_with('/') || text->find_first_of("?#*{} ") != std::string::npos)) {
        reader.Fail(prefix->mark, what + ".rewrite.prefix must be a path such as `/openai/v1`");
      }
      while (text && text->ends_with('/')) text->pop_back();
      route.rewrite_prefix = std::move(text);
    }
  }
  if (ok) routes.push_back(std::move(route));
}

}  // namespace weir::policy
