// process_*: what the operating system says of this process, in the names that Prometheus clients
// share.
//
// Read from /proc at each scrape, on the scraping thread.
//
//   AddProcessMetrics(registry);
#pragma once

#include "metrics/registry.h"

namespace weir::metrics {

void AddProcessMetrics(Registry& registry);

}  // namespace weir::metrics
