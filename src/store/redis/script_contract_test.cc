// The scripts on Redis and Valkey, held to what every store must do.
#include <gtest/gtest.h>

#include "testing/redis_server.h"
#include "testing/script_store.h"
#include "testing/store_contract.h"

namespace weir::testing {
namespace {

template <typename Program>
struct ServerFixture {
  std::unique_ptr<ScriptStore> Make(int64_t /*max_keys*/, OnFull /*on_full*/) {
    static RedisServer server({.program = Program::kName});
    return std::make_unique<ScriptStore>(server.Console());
  }
};
struct Redis {
  static constexpr const char* kName = "redis-server";
};
struct Valkey {
  static constexpr const char* kName = "valkey-server";
};
using Servers = ::testing::Types<ServerFixture<Redis>, ServerFixture<Valkey>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Server, StoreContract, Servers);
// The server's memory is its own to bound.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BoundedStoreContract);

}  // namespace
}  // namespace weir::testing
