#include "doors/ops/ops.h"

#include <atomic>
#include <string>

#include "gtest/gtest.h"
#include "testing/door_client.h"

namespace weir::doors {
namespace {

TEST(OpsTest, Case59_ProbesAndScrapesAreNeverLimitedOrCounted) {
  SimulatedEngine weir("limits: [{name: all, rate: 1/hour}]");
  EXPECT_EQ(weir.Allowed(3, {}), 1);
  const std::atomic<bool> ready{true};
  Ops ops(weir.engine->metrics(), ready);
  DoorClient client(ops, weir);
  for (int i = 0; i < 100; ++i) {
    for (const char* path : {"/livez", "/healthz", "/readyz", "/metrics"})
      ASSERT_EQ(client.Get(path).status, 200);
  }
  EXPECT_EQ(weir.engine->metrics().DecisionCount(metrics::Outcome::kDenied), 2u);
  const DoorAnswer page = client.Get("/metrics");
  EXPECT_EQ(page.Field("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_TRUE(page.Has("weir_limit_decisions_total"));
}

TEST(OpsTest, ReadinessFollowsTheFlagAndLivenessDoesNot) {
  SimulatedEngine weir("limits: []");
  std::atomic<bool> ready{false};
  Ops ops(weir.engine->metrics(), ready);
  DoorClient client(ops, weir);
  EXPECT_EQ(client.Get("/readyz").status, 503);
  EXPECT_EQ(client.Get("/livez").status, 200);
  ready = true;
  EXPECT_EQ(client.Get("/readyz").status, 200);
  EXPECT_EQ(client.Ask("HEAD", "/livez", "", "").status, 200);
  EXPECT_EQ(client.Post("/livez", "x").status, 405);
  EXPECT_EQ(client.Get("/").status, 404);
}

}  // namespace
}  // namespace weir::doors
