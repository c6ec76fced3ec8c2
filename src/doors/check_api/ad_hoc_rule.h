// The rule of a call that brings its own: {"rate":"10/min","burst":10,"algorithm":"token_bucket"}.
//
//   Result<core::MeterSpec> spec = SpecOf(*item.rule);
//   if (!spec) return BadRequest(spec.error());            // "rule.rate: ..."
//
// Thread safety: pure functions.
#pragma once

#include "core/meter.h"
#include "weir/result.h"
#include "wire/json/check_request.h"

namespace weir::doors {

// kInvalidArgument names the field.
Result<core::MeterSpec> SpecOf(const json::AdHocRule& rule);

}  // namespace weir::doors
