// Reads the model from a request's body, strictly, so that no other reader of the same bytes can
// find another one.
//
// A body is read as JSON when its Content-Type says so, and also when it begins like an object
// although the type says otherwise or nothing: upstreams are lenient about the type. Multipart,
// audio, image and other binary types have no model.
//
// Thread safety: the loop's thread only.
#pragma once

#include "base/task.h"
#include "gateway/call.h"

namespace weir::gateway {

struct Inspection {
  int status = 0;  // 0: call.model holds the model (empty when there is none). Else refuse with it.
  std::string message;
  bool client_gone = false;
};

// Holds up to bounds.inspect of the body. Afterwards call.model_known is set and the body is whole,
// unless its type has no model.
Task<Inspection> InspectModel(LoopState& state, Client& client, Call& call);

}  // namespace weir::gateway
