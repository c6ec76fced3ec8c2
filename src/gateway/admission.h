// Admission: what happens to a call before anything is sent: canonical path, route, identity,
// attributes, the decision.
//
// Thread safety: the loop's thread only. Admit does not wait; nothing allocates in the steady
// state.
//
//   Admission admission = Admit(state, client, call);
//   if (admission == Admission::kNeedsModel) { read the body; admission = Admit(state, client,
//   call); }
#pragma once

#include "gateway/call.h"

namespace weir::gateway {

enum class Admission : uint8_t {
  kForward,     // Allowed and charged; parallel slots are held in call.reservation.
  kAnswered,    // Not to be forwarded: call.out holds the answer.
  kNeedsModel,  // A limit that may apply depends on the model, and the body has not been looked at.
  kWaits,       // The shared store decides: call.decision is under way.
};

// Decides the call in call.head. Ask again once call.model_known; the policy may have changed in
// between, so everything is looked up anew.
Admission Admit(LoopState& state, const Client& client, Call& call);

// After kWaits: asks the shared store. kForward or kAnswered.
Task<Admission> AwaitAdmission(LoopState& state, Call& call);

}  // namespace weir::gateway
