// CallAttributes: attributes as a request names them, made into those that a policy matches:
// addresses and paths in their one canonical form, host names without a port, an API key turned
// into its client's id at once.
//
//   CallAttributes call;                                     // one per loop, used again and again
//   Result<void> set = call.Begin(worker).Set("path", "/v1//chat");
//   if (!set) return BadRequest(set.error());
//   worker.Decide(call.attributes(), ...);                   // path is "/v1/chat"
//
// Thread safety: none; one owner. Views that were set must outlive the decision; what was rewritten
// lives here until the next Begin. Nothing allocates but errors, and paths and hosts that are not
// canonical already.
#pragma once

#include <string>
#include <string_view>

#include "base/hmac_id.h"
#include "decide/engine.h"
#include "identity/address.h"
#include "policy/attributes.h"
#include "weir/result.h"

namespace weir::doors {

class CallAttributes {
 public:
  // Forgets everything; names are those of the worker's running policy, which must stay until the
  // decision.
  CallAttributes& Begin(decide::Worker& worker);

  // kInvalidArgument names the attribute: unknown, or a value that is no address or no path.
  Result<void> Set(std::string_view name, std::string_view value);
  // The client that the gateway would name for this key. kInvalidArgument with an empty key or
  // beside `client`.
  Result<void> SetApiKey(std::string_view api_key);
  void SetAddress(identity::IpAddress address);
  // Any text; what follows a '?' is left out. kInvalidArgument: not a path.
  Result<void> SetPath(std::string_view path);
  void SetHost(std::string_view host);
  void SetPlain(int index, std::string_view value) { attributes_.Set(index, value); }

  const policy::Attributes& attributes() const { return attributes_; }
  // `client` is a keyed id.
  bool client_hashed() const { return client_hashed_; }

 private:
  decide::Worker* worker_ = nullptr;
  const policy::AttributeTable* names_ = nullptr;
  policy::Attributes attributes_;
  ClientId client_;
  bool client_hashed_ = false;
  identity::IpText ip_;
  std::string path_;
  std::string host_;
};

}  // namespace weir::doors
