// Call: one request and its answer, with the buffers that both need; and the steps that it goes
// through.
//
// Calls are large (two heads of 4 KiB and four buffers) and reused: a connection holds one only
// from a request's first byte to its answer's last, so that an idle connection stays small.
//
// Thread safety: the loop's thread only. Ownership: the LoopState keeps spare ones; a connection
// borrows one per call.
//
//   std::unique_ptr<Call> call = state.TakeCall();
//   Ending ending = co_await HandleCall(state, client, *call, head_bytes);
//   state.GiveBack(std::move(call));
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/task.h"
#include "decide/engine.h"
#include "decide/verdict.h"
#include "gateway/policy_view.h"
#include "gateway/request_body.h"
#include "identity/client_identity.h"
#include "net/stream.h"
#include "wire/buffer.h"
#include "wire/http1/body.h"
#include "wire/http1/request_head.h"
#include "wire/http1/response_head.h"

namespace weir::gateway {

class LoopState;

// A connection's client, for the calls on it.
struct Client {
  net::Stream& stream;
  wire::Buffer in;              // What it sent and nobody has consumed yet.
  identity::IpAddress address;  // The socket's peer; loopback for a unix socket.
  std::string address_text;     // As X-Forwarded-For shows it; "" for a unix socket.
};

// What becomes of the connection after a call.
enum class Ending : uint8_t {
  kKeep,   // The next request may come.
  kClose,  // Close it so that the answer is still read.
  kAbort,  // Drop it: the client is gone, or its answer was cut short.
};

struct Call {
  http1::RequestHead head;
  http1::ResponseHead answer;  // The upstream's.
  wire::Buffer out;            // The head to the upstream, later the answer to the client.
  wire::Buffer upstream_in;    // What the upstream sent and nobody has consumed yet.
  wire::Buffer
      limit_fields;  // The limit headers of the answer, rendered when the call was decided.
  RequestBody body;
  http1::BodyReader answer_body;

  std::shared_ptr<const PolicyView> view;
  const policy::Route* route = nullptr;
  const UpstreamView* upstream = nullptr;
  std::string_view path;  // Canonical.
  std::string path_scratch;
  std::string target;  // For the upstream, without its base path.
  std::string host;    // Of the attributes: lower case, no port.
  std::string model;
  bool model_known = false;  // The body was looked at.
  bool trusted_peer = false;
  bool upgrade = false;  // The client asks for a protocol that may pass.
  identity::Identity identity;

  std::string_view request_id;  // The client's, or made_request_id.
  std::array<char, 32> made_request_id;
  size_t head_bytes = 0;  // Of the request, at the front of the client's buffer.
  int64_t start_ns = 0;
  int64_t wall_ns = 0;
  int64_t deadline_ns = net::kNoDeadline;  // timeouts.total

  bool keep_alive = true;     // The answer may leave the connection open.
  bool answer_begun = false;  // Bytes of the final answer went to the client.
  bool client_gone = false;   // It hung up while the upstream was waited for.
  bool streaming = false;     // Counted in weir_streams.

  // For the log.
  int status = 0;
  std::string_view outcome;  // Static storage.
  Source source = Source::kMemory;
  std::string limit;  // The binding limit's name.

  decide::DecisionPtr decision{nullptr, {nullptr}};  // While a shared store is asked.
  std::optional<decide::ReservationId>
      reservation;  // Parallel slots, renewed while the call lasts.
  Call* next_reserved = nullptr;
  Call* previous_reserved = nullptr;

  // Ready for another request; keeps buffers of ordinary size.
  void Reset();
};

// Answers the request at the front of client.in, whose head (`head_bytes` long) is parsed in
// call.head. Afterwards client.in holds what follows the request, if the ending is kKeep.
Task<Ending> HandleCall(LoopState& state, Client& client, Call& call, size_t head_bytes);

}  // namespace weir::gateway
