#include "gateway/upstream_request.h"

#include <algorithm>
#include <string>

#include "gateway/field_copier.h"
#include "wire/http1/hop_by_hop.h"
#include "wire/http1/response_writer.h"

namespace weir::gateway {
namespace {

using http1::FieldId;

void AppendLine(wire::Buffer& out, std::string_view name, std::string_view value) {
  out.Append(name);
  out.Append(": ");
  out.Append(value);
  out.Append("\r\n");
}

// Some servers and frameworks (IIS, PHP's, Rails) serve the path or the method that these name
// instead of the request line's: a call would be limited as one and served as another, whoever
// added the field.
bool NamesAnotherTarget(std::string_view name) {
  constexpr std::string_view kNames[] = {"x-original-url", "x-rewrite-url",
                                         "x-http-method-override", "x-http-method",
                                         "x-method-override"};
  return (name[0] | 0x20) == 'x' && std::ranges::any_of(kNames, [&](std::string_view other) {
           return http1::EqualIgnoreCase(name, other);
         });
}

// Fields that are written anew, or not at all.
bool IsOurs(const Call& call, const http1::HeaderField& field) {
  switch (field.id) {
    case FieldId::kHost:
    case FieldId::kContentLength:
    case FieldId::kExpect:
    case FieldId::kXForwardedFor:
    case FieldId::kXRequestId:
      return true;
    case FieldId::kXForwardedProto:
    case FieldId::kXForwardedHost:
    case FieldId::kForwarded:
    case FieldId::kXRealIp:
      return !call.trusted_peer;
    case FieldId::kOther:
      return NamesAnotherTarget(field.name);
    default:
      return false;
  }
}

// CGI and WSGI show X_Forwarded_For to the application as X-Forwarded-For: no client speaks in our
// name that way.
bool PosesAsOurs(const Call& call, const http1::HeaderField& field) {
  if (field.id != FieldId::kOther || field.name.find('_') == std::string_view::npos) return false;
  std::string name(field.name);
  std::ranges::replace(name, '_', '-');
  const http1::HeaderField posed{
      .name = name, .value = field.value, .id = http1::IdentifyField(name)};
  return IsOurs(call, posed) || posed.id == FieldId::kTransferEncoding ||
         call.upstream->Replaces(posed);
}

void AppendForwarded(const Call& call, const Client& client, wire::Buffer& out) {
  const http1::FixedHeaders& headers = call.head.headers;
  bool begun = false;
  const auto add = [&](std::string_view value) {
    if (value.empty()) return;
    out.Append(begun ? ", " : "X-Forwarded-For: ");
    out.Append(value);
    begun = true;
  };
  if (call.trusted_peer) {
    for (const http1::HeaderField& field : headers) {
      if (field.id == FieldId::kXForwardedFor) add(field.value);
    }
  }
  add(client.address_text);
  if (begun) out.Append("\r\n");
  if (!call.trusted_peer || headers.Find(FieldId::kXForwardedProto) == nullptr) {
    AppendLine(out, "X-Forwarded-Proto", client.stream.is_tls() ? "https" : "http");
  }
  if (!call.head.host.empty() &&
      (!call.trusted_peer || headers.Find(FieldId::kXForwardedHost) == nullptr)) {
    AppendLine(out, "X-Forwarded-Host", call.head.host);
  }
}

void AppendFraming(const Call& call, wire::Buffer& out) {
  if (call.body.none()) {
    if (call.head.has_content_length) out.Append("Content-Length: 0\r\n");
  } else if (SendsChunked(call)) {
    out.Append("Transfer-Encoding: chunked\r\n");
  } else {
    out.Append("Content-Length: ");
    out.AppendDecimal(call.body.whole() ? static_cast<int64_t>(call.body.payload().size())
                                        : call.head.content_length);
    out.Append("\r\n");
  }
}

}  // namespace

bool MayUpgrade(const http1::RequestHead& head) {
  if (!head.upgrade || head.body != http1::BodyKind::kNone) return false;
  const std::string_view value = head.headers.Value(FieldId::kUpgrade);
  const auto begins_with = [&](std::string_view prefix) {
    return value.size() >= prefix.size() &&
           http1::EqualIgnoreCase(value.substr(0, prefix.size()), prefix);
  };
  // One protocol: with a list the upstream could choose one that we would not pass.
  return !value.empty() && value.find(',') == std::string_view::npos && !begins_with("h2") &&
         !begins_with("http") && !begins_with("tls");
}

bool SendsChunked(const Call& call) {
  if (call.body.none()) return false;
  return call.head.body == http1::BodyKind::kChunked &&
         (!call.body.whole() || !call.body.trailers().empty());
}

void AppendUpstreamHead(const Call& call, const Client& client, size_t url, wire::Buffer& out) {
  const UpstreamView& upstream = *call.upstream;
  out.Reserve(1024);
  out.Append(call.head.method);
  out.Append(' ');
  out.Append(upstream.pool->Url(url).base_path);
  out.Append(call.target);
  out.Append(" HTTP/1.1\r\n");
  if (!upstream.sets_host) AppendLine(out, "Host", upstream.pool->Authority(url));

  const http1::HopByHop hop(call.head.headers);
  const bool replaces = !upstream.replaced.empty();
  FieldCopier copier(out);
  for (const http1::HeaderField& field : call.head.headers) {
    if (IsOurs(call, field) || hop.Stops(field) || (replaces && upstream.Replaces(field)) ||
        PosesAsOurs(call, field)) {
      copier.Skip(field);
    } else {
      copier.Keep(field);
    }
  }
  copier.Finish();

  AppendForwarded(call, client, out);
  AppendLine(out, "x-request-id", call.request_id);
  out.Append(upstream.fields);
  if (call.upgrade) {
    out.Append("Connection: Upgrade\r\n");
    AppendLine(out, "Upgrade", call.head.headers.Value(FieldId::kUpgrade));
  }
  AppendFraming(call, out);
  out.Append("\r\n");
}

}  // namespace weir::gateway
