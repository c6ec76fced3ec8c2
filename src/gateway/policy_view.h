// PolicyView: a policy as one loop's gateway uses it: pools joined to the upstreams, fields
// rendered once, questions that do not depend on the call answered in advance. Made at start and
// when a reload has brought another policy.
//
// Thread safety: the loop's thread only. Immutable but for the pools' own state.
// Ownership: shared by the calls that began under it, so a reload never pulls a route from under a
// call.
//
//   std::shared_ptr<const PolicyView> view = PolicyView::Create(policy, previous.get(),
//   pool_options, metrics); const UpstreamView& upstream = view->upstreams[route->upstream];
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gateway/cors.h"
#include "gateway/upstream_pool.h"
#include "metrics/weir_metrics.h"
#include "policy/policy.h"
#include "wire/http1/fields.h"

namespace weir::gateway {

// A header that some limit reads.
struct HeaderAttribute {
  int index = 0;
  std::string name;  // Lower case.
  http1::FieldId id = http1::FieldId::kOther;
};

// A policy's timeouts as plain nanoseconds; 0 means none.
struct Timeouts {
  int64_t header_ns = 0;
  int64_t idle_ns = 0;
  int64_t connect_ns = 0;
  int64_t first_byte_ns = 0;
  int64_t between_bytes_ns =
      0;  // Between pieces of an answer's body: the longer of first_byte and idle.
  int64_t write_ns = 0;
  int64_t total_ns = 0;
};

struct UpstreamView {
  std::shared_ptr<UpstreamPool> pool;
  std::string name;
  std::string fields;  // The configured headers, rendered: "authorization: Bearer …\r\n". Secret.
  std::vector<std::string> replaced;  // Their names.
  bool replaces_credentials = false;  // One of them is a credential: none of the client's goes on.
  bool sets_host = false;

  // Whether the client's field must give way to the configured ones.
  bool Replaces(const http1::HeaderField& field) const;
};

struct PolicyView {
  std::shared_ptr<const policy::Policy> policy;
  std::vector<UpstreamView> upstreams;
  std::vector<const policy::Limit*> model_limits;  // Those that can depend on the model.
  std::vector<HeaderAttribute> headers;
  Cors cors;
  Timeouts timeouts;
  http1::HeadLimits head_limits;

  // True when a limit that may apply to a call with these attributes (all but the model) depends on
  // the model.
  bool NeedsModel(const policy::Attributes& call) const;

  // `previous` may be null; its pools are kept where they serve the same servers.
  static std::shared_ptr<const PolicyView> Create(std::shared_ptr<const policy::Policy> policy,
                                                  const PolicyView* previous,
                                                  const UpstreamPool::Options& pool_options,
                                                  metrics::WeirMetrics& metrics);

 private:
  explicit PolicyView(const policy::CorsConfig& config) : cors(config) {}
};

}  // namespace weir::gateway
