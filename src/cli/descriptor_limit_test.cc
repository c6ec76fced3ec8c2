#include "cli/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace weir::cli {
namespace {

policy::Config ConfigOf(int64_t connections, bool gateway) {
  policy::Config config;
  config.bounds.connections = connections;
  if (gateway) config.listen.gateway = policy::DoorConfig{.address = "127.0.0.1:0"};
  return config;
}

TEST(DescriptorLimit, EnoughIsNoCauseForAWarning) {
  // 1,000 connections take 2,000 descriptors at the gateway, 1,000 elsewhere, and 192 are spare.
  for (const auto& [gateway, needed] : {std::pair(true, 2192), {false, 1192}}) {
    const DescriptorPlan enough = PlanDescriptors(ConfigOf(1000, gateway), needed);
    EXPECT_EQ(enough.needed, needed);
    EXPECT_EQ(enough.connections, 1000);
    EXPECT_FALSE(enough.short_of_them);
  }
}

TEST(DescriptorLimit, AnAskedForNumberThatCannotBeHeldIsToldAndTheBoundLowered) {
  const DescriptorPlan gateway = PlanDescriptors(ConfigOf(1000, true), 1024);
  EXPECT_TRUE(gateway.short_of_them);
  EXPECT_EQ(gateway.needed, 2192);
  EXPECT_EQ(gateway.connections, 416);
  const DescriptorPlan api = PlanDescriptors(ConfigOf(1000, false), 1191);
  EXPECT_TRUE(api.short_of_them);
  EXPECT_EQ(api.connections, 999);
  EXPECT_EQ(PlanDescriptors(ConfigOf(1000, true), 64).connections, 1);
}

TEST(DescriptorLimit, TheDefaultBoundFitsWhatThereIs) {
  const DescriptorPlan plan = PlanDescriptors(ConfigOf(20'000, true), 20'000);
  EXPECT_FALSE(plan.short_of_them);
  EXPECT_EQ(plan.connections, 9904);
}

TEST(DescriptorLimit, TheSoftLimitIsRaisedToTheHardOne) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = 256, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const int64_t allowed = RaiseDescriptorLimit();
  rlimit after{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  EXPECT_EQ(static_cast<uint64_t>(allowed), std::min<uint64_t>(before.rlim_max, INT64_MAX));
}

}  // namespace
}  // namespace weir::cli
