// StoreOptions: the `store` section as the shared store wants it, and policies that fit it.
//
//   policy::Policy::LoadResult policy = LoadPolicy(path);
//   const auto options = RedisOptionsOf(config.store);
//
// Thread safety: pure functions.
#pragma once

#include <expected>
#include <string>

#include "policy/config.h"
#include "policy/policy.h"
#include "shared_store/redis_store.h"

namespace weir::cli {

// All but what a loop adds of its own. The error names the key of the section and its place, and
// never shows the password. REQUIRES: store.kind is redis.
std::expected<shared_store::RedisStoreOptions, policy::ConfigError> RedisOptionsOf(
    const policy::StoreConfig& store);

// Policy::Load in this process's environment; with `store.kind: redis` also an error for each limit
// that the store cannot count to the unit, and for an address that is none.
policy::Policy::LoadResult LoadPolicy(const std::string& path);

}  // namespace weir::cli
