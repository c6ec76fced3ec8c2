// StoreOptions: the `store` section as the shared store wants it, and policies that fit it.
//
//   policy::Policy::LoadResult policy = LoadPolicy(path);
//   Result<shared_store::RedisStoreOptions> options = RedisOptionsOf(config.store);
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "policy/config.h"
#include "policy/policy.h"
#include "shared_store/redis_store.h"
#include "weir/result.h"

namespace weir::cli {

// All but what a loop adds of its own. kInvalidArgument names the key of the section and never
// shows the password. REQUIRES: store.kind is redis.
Result<shared_store::RedisStoreOptions> RedisOptionsOf(const policy::StoreConfig& store);

// Policy::Load in this process's environment; with `store.kind: redis` also an error for each limit
// that the store cannot count to the unit, and for an address that is none.
policy::Policy::LoadResult LoadPolicy(const std::string& path);

}  // namespace weir::cli
