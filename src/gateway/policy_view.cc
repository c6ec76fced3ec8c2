#include "gateway/policy_view.h"

#include <algorithm>
#include <utility>

#include "wire/http1/response_writer.h"

namespace weir::gateway {
namespace {

constexpr uint32_t kModelBit = uint32_t{1} << policy::kModelAttribute;

bool DependsOnModel(const policy::Limit& limit) {
  if ((limit.needed_mask & kModelBit) != 0) return true;
  return std::ranges::any_of(limit.variants, [](const policy::Variant& variant) {
    return (variant.when.named_mask() & kModelBit) != 0;
  });
}

Timeouts TimeoutsOf(const policy::TimeoutsConfig& config) {
  Timeouts timeouts;
  timeouts.header_ns = config.header.count();
  timeouts.idle_ns = config.idle.count();
  timeouts.connect_ns = config.connect.count();
  timeouts.first_byte_ns = config.first_byte.count();
  timeouts.write_ns = config.write.count();
  timeouts.total_ns = config.total.count();
  const bool bounded = timeouts.first_byte_ns > 0 && timeouts.idle_ns > 0;
  timeouts.between_bytes_ns = bounded ? std::max(timeouts.first_byte_ns, timeouts.idle_ns) : 0;
  return timeouts;
}

UpstreamView ViewOf(const policy::UpstreamConfig& config, std::shared_ptr<UpstreamPool> pool) {
  UpstreamView view;
  view.pool = std::move(pool);
  view.name = config.name;
  wire::Buffer fields;
  for (const policy::UpstreamHeader& header : config.headers) {
    http1::AppendField(fields, header.name, header.value.Reveal());
    view.replaced.push_back(header.name);
    const http1::FieldId id = http1::IdentifyField(header.name);
    view.replaces_credentials = view.replaces_credentials || id == http1::FieldId::kAuthorization ||
                                id == http1::FieldId::kXApiKey || id == http1::FieldId::kApiKey;
    view.sets_host = view.sets_host || id == http1::FieldId::kHost;
  }
  view.fields = fields.View();
  return view;
}

}  // namespace

bool UpstreamView::Replaces(const http1::HeaderField& field) const {
  if (replaces_credentials &&
      (field.id == http1::FieldId::kAuthorization || field.id == http1::FieldId::kXApiKey ||
       field.id == http1::FieldId::kApiKey)) {
    return true;
  }
  return std::ranges::any_of(
      replaced, [&](const std::string& own) { return http1::EqualIgnoreCase(field.name, own); });
}

bool PolicyView::NeedsModel(const policy::Attributes& call) const {
  return std::ranges::any_of(model_limits, [&](const policy::Limit* limit) {
    return limit->applies_at_gateway && limit->match.MatchesPresent(call);
  });
}

std::shared_ptr<const PolicyView> PolicyView::Create(std::shared_ptr<const policy::Policy> policy,
                                                     const PolicyView* previous,
                                                     const UpstreamPool::Options& pool_options,
                                                     metrics::WeirMetrics& metrics) {
  const policy::Config& config = policy->config();
  std::shared_ptr<PolicyView> view(new PolicyView(config.cors));
  std::vector<std::string> names;
  for (const policy::UpstreamConfig& upstream : config.upstreams) names.push_back(upstream.name);
  const std::vector<metrics::UpstreamSeries> series = metrics.BindUpstreams(names);

  for (size_t i = 0; i < config.upstreams.size(); ++i) {
    const policy::UpstreamConfig& upstream = config.upstreams[i];
    std::shared_ptr<UpstreamPool> pool;
    if (previous != nullptr) {
      for (const UpstreamView& old : previous->upstreams) {
        if (old.pool->Serves(upstream)) pool = old.pool;
      }
    }
    if (pool == nullptr) {
      UpstreamPool::Options options = pool_options;
      options.series = series[i];
      options.seed += i;
      pool = UpstreamPool::Create(upstream, options);
    }
    view->upstreams.push_back(ViewOf(upstream, std::move(pool)));
  }
  for (const policy::Limit& limit : policy->limits()) {
    if (DependsOnModel(limit)) view->model_limits.push_back(&limit);
  }
  for (const policy::AttributeTable::Header& header : policy->attributes().headers()) {
    view->headers.push_back(
        {header.index, header.field_name, http1::IdentifyField(header.field_name)});
  }
  view->timeouts = TimeoutsOf(config.timeouts);
  view->head_limits.bytes_max = static_cast<size_t>(config.bounds.header_bytes);
  view->head_limits.target_bytes_max =
      std::min(view->head_limits.target_bytes_max, view->head_limits.bytes_max);
  view->policy = std::move(policy);
  return view;
}

}  // namespace weir::gateway
