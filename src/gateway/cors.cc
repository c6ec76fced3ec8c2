#include "gateway/cors.h"

#include <algorithm>

#include "answers/limit_headers.h"
#include "wire/http1/response_writer.h"

namespace weir::gateway {

Cors::Cors(const policy::CorsConfig& config) {
  for (const std::string& origin : config.origins) {
    if (origin == "*") {
      any_ = true;
    } else {
      origins_.push_back(origin);
    }
  }
}

bool Cors::IsPreflight(const http1::RequestHead& head) const {
  return enabled() && head.method_id == http1::Method::kOptions &&
         head.headers.Find(http1::FieldId::kOrigin) != nullptr &&
         head.headers.Find("access-control-request-method") != nullptr;
}

bool Cors::Allows(std::string_view origin) const {
  return any_ || std::ranges::find(origins_, origin) != origins_.end();
}

void Cors::AppendOrigin(std::string_view origin, wire::Buffer& out) const {
  if (any_) {
    out.Append("Access-Control-Allow-Origin: *\r\n");
    return;
  }
  http1::AppendField(out, "Access-Control-Allow-Origin", origin);
}

void Cors::AppendPreflightFields(const http1::RequestHead& head, wire::Buffer& out) const {
  out.Append("Vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers\r\n");
  const std::string_view origin = head.headers.Value(http1::FieldId::kOrigin);
  if (!Allows(origin)) return;
  AppendOrigin(origin, out);
  out.Append("Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n");
  if (const http1::HeaderField* names = head.headers.Find("access-control-request-headers")) {
    http1::AppendField(out, "Access-Control-Allow-Headers", names->value);
  }
  out.Append("Access-Control-Max-Age: 600\r\n");
}

void Cors::AppendFields(std::string_view origin, wire::Buffer& out) const {
  if (!enabled()) return;
  if (!any_)
    out.Append("Vary: Origin\r\n");  // Caches must not hand one origin's answer to another.
  if (origin.empty() || !Allows(origin)) return;
  AppendOrigin(origin, out);
  out.Append("Access-Control-Expose-Headers: ");
  out.Append(answers::kExposedHeaders);
  out.Append(", x-request-id, x-upstream-request-id\r\n");
}

bool Cors::Replaces(std::string_view name) const {
  if (!enabled()) return false;
  // Expose-Headers is a list that both may add to. Credentials go with a named origin only.
  return http1::EqualIgnoreCase(name, "access-control-allow-origin") ||
         (any_ && http1::EqualIgnoreCase(name, "access-control-allow-credentials"));
}

}  // namespace weir::gateway
