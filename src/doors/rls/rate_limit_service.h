// RateLimitService: envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit, from the bytes of
// a request to those of its response. Over the limit is an answer, not an error: a gRPC error would
// look like an outage, and Envoy would let the call pass.
//
//   RateLimitService service(worker, seed);                       // one per loop
//   Result<const decide::Verdict*> decided = service.Decide(message, now);
//   if (decided) service.AppendResponse(**decided, wall_ns, out);
//
// What stands in a response: one status per descriptor, in their order; the limit headers that
// `answers.headers` names, but for X-RateLimit-*, which Envoy writes itself out of the statuses
// (enable_x_ratelimit_headers), and for x-ratelimit-*-requests, which would stand beside those of
// an upstream that has its own; on a refusal the JSON body, and `limit`, `source` and
// `retry_after_ms` as dynamic metadata, for access logs.
//
// Thread safety: one loop; it uses that loop's worker. Ownership: borrows the worker.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "decide/descriptors.h"
#include "decide/engine.h"
#include "wire/buffer.h"
#include "wire/rls/request.h"
#include "wire/rls/response.h"

namespace weir::doors::rls {

class RateLimitService {
 public:
  RateLimitService(decide::Worker& worker, uint64_t jitter_seed)
      : worker_(worker), random_(jitter_seed) {}

  // Whether decisions wait for a shared store: then Begin is asked, else Decide.
  bool waits() const { return worker_.waits(); }
  decide::Worker& worker() { return worker_; }

  // kInvalidArgument: no such message, no domain, no descriptors, hits or a rate out of range. The
  // message says which, and nothing is charged.
  Result<const decide::Verdict*> Decide(std::string_view message, core::Now now);
  Result<decide::DecisionPtr> Begin(std::string_view message);

  // Appends the response. `wall_ns`: Unix time.
  void AppendResponse(const decide::Verdict& verdict, int64_t wall_ns, wire::Buffer& out);

 private:
  Result<decide::DescriptorCall> Read(std::string_view message);
  Result<decide::Descriptor> Convert(const weir::rls::Descriptor& descriptor, size_t index) const;
  void AppendHeaders(const decide::Verdict& verdict, int64_t wall_ns,
                     weir::rls::ResponseWriter& writer);

  decide::Worker& worker_;
  uint64_t random_;
  // Of the call that is being answered.
  weir::rls::RequestReader reader_;
  std::vector<decide::DescriptorEntry> entries_;
  std::vector<decide::Descriptor> descriptors_;
  wire::Buffer text_;
};

}  // namespace weir::doors::rls
