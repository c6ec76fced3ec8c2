#include "policy/config.h"

#include <ostream>

namespace weir::policy {

std::ostream& operator<<(std::ostream& out, const Secret&) { return out << kRedacted; }

std::string ToString(const Place& place) {
  if (place.line == 0) return place.file;
  return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

std::string_view OnFailureName(OnFailure value) {
  switch (value) {
    case OnFailure::kOpen:
      return "open";
    case OnFailure::kClosed:
      return "closed";
    case OnFailure::kLocalShare:
      return "local_share";
  }
  return "";
}

std::string_view IdentityKindName(IdentityKind kind) {
  switch (kind) {
    case IdentityKind::kApiKey:
      return "api_key";
    case IdentityKind::kJwtSubject:
      return "jwt.sub";
    case IdentityKind::kHeader:
      return "header";
    case IdentityKind::kIp:
      return "ip";
  }
  return "";
}

std::string_view JwtAlgorithmName(JwtAlgorithm algorithm) {
  switch (algorithm) {
    case JwtAlgorithm::kHs256:
      return "HS256";
    case JwtAlgorithm::kRs256:
      return "RS256";
    case JwtAlgorithm::kEs256:
      return "ES256";
  }
  return "";
}

std::string_view ErrorBodyName(ErrorBody body) {
  switch (body) {
    case ErrorBody::kAuto:
      return "auto";
    case ErrorBody::kOpenAi:
      return "openai";
    case ErrorBody::kAnthropic:
      return "anthropic";
    case ErrorBody::kProblem:
      return "problem";
  }
  return "";
}

}  // namespace weir::policy
