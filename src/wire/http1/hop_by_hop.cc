#include "wire/http1/hop_by_hop.h"

#include <algorithm>

namespace weir::http1 {
namespace {

// Fields of the hop itself, whatever Connection says.
bool BelongsToHop(FieldId id) {
  switch (id) {
    case FieldId::kConnection:
    case FieldId::kKeepAlive:
    case FieldId::kProxyAuthenticate:
    case FieldId::kProxyAuthorization:
    case FieldId::kProxyConnection:
    case FieldId::kTe:
    case FieldId::kTrailer:
    case FieldId::kTransferEncoding:
    case FieldId::kUpgrade:
      return true;
    default:
      return false;
  }
}

// Fields that Connection cannot take away: every field known by an id (they frame, route,
// authenticate, name the client or describe the content).
bool MattersEndToEnd(FieldId id) { return id != FieldId::kOther; }

bool NamesOthers(std::string_view list) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view item = list.substr(0, comma);
    while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
    while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
    if (!item.empty() && !EqualIgnoreCase(item, "close") && !EqualIgnoreCase(item, "keep-alive") &&
        IdentifyField(item) == FieldId::kOther) {
      return true;
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace

HopByHop::HopByHop(const FixedHeaders& headers) : headers_(headers) {
  for (const HeaderField& field : headers) {
    if (field.id == FieldId::kConnection && NamesOthers(field.value)) names_others_ = true;
  }
}

bool HopByHop::Stops(const HeaderField& field) const {
  if (BelongsToHop(field.id)) return true;
  if (!names_others_ || MattersEndToEnd(field.id)) return false;
  return std::any_of(headers_.begin(), headers_.end(), [&](const HeaderField& other) {
    return other.id == FieldId::kConnection && HasToken(other.value, field.name);
  });
}

}  // namespace weir::http1
