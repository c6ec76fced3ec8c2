// StoreOptions: the `store` section as the shared store wants it.
//
//   Result<shared_store::RedisStoreOptions> options = RedisOptionsOf(config.store);
//
// Thread safety: pure functions.
#pragma once

#include "policy/config.h"
#include "shared_store/redis_store.h"
#include "weir/result.h"

namespace weir::cli {

// All but what a loop adds of its own. kInvalidArgument names the key of the section and never
// shows the password. REQUIRES: store.kind is redis.
Result<shared_store::RedisStoreOptions> RedisOptionsOf(const policy::StoreConfig& store);

}  // namespace weir::cli
