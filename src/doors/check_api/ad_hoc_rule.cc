#include "doors/check_api/ad_hoc_rule.h"

#include <algorithm>
#include <string>

#include "policy/rate_text.h"

namespace weir::doors {

Result<core::MeterSpec> SpecOf(const json::AdHocRule& rule) {
  const Result<policy::RateText> rate = policy::ParseRate(rule.rate);
  if (!rate) return InvalidArgument("rule.rate: " + rate.error().message);
  if (rate->unlimited)
    return InvalidArgument("rule.rate: unlimited is no rule; leave the check out");
  if (rate->unit && *rate->unit != Unit::kRequests) {
    return InvalidArgument("rule.rate: write it without a unit; the cost counts as it is given");
  }
  if (rule.algorithm == Algorithm::kParallel) {
    return InvalidArgument("rule.algorithm: parallel limits belong into the policy");
  }
  const bool bucket = rule.algorithm == Algorithm::kTokenBucket;
  if (rule.burst && *rule.burst < 1) return InvalidArgument("rule.burst: must be at least 1");
  if (rule.burst && !bucket && *rule.burst != rate->units) {
    return InvalidArgument("rule.burst: only a token_bucket has one that differs from the rate");
  }
  core::MeterSpec spec{.algorithm = rule.algorithm,
                       .rate = {.units = rate->units, .period = rate->period}};
  spec.rate.burst = bucket ? rule.burst.value_or(std::max<int64_t>(rate->units, 1)) : rate->units;
  return spec;
}

}  // namespace weir::doors
