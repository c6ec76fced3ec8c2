#include "cli/connection_bound.h"

#include <gtest/gtest.h>

namespace weir::cli {
namespace {

TEST(ConnectionBound, NoMoreThanTheMostAreOpen) {
  ConnectionBound bound(2);
  EXPECT_TRUE(bound.Take());
  EXPECT_TRUE(bound.Take());
  EXPECT_FALSE(bound.Take());
  EXPECT_EQ(bound.open(), 2);
  bound.GiveBack();
  EXPECT_TRUE(bound.Take());
  EXPECT_EQ(bound.open(), 2);
}

TEST(ConnectionBound, Case59_AFullGatewayKeepsNoProbeOut) {
  ConnectionBound bound(1);
  EXPECT_TRUE(bound.Take());
  EXPECT_FALSE(bound.Take());
  for (int64_t i = 0; i < ConnectionBound::kForOperators; ++i)
    EXPECT_TRUE(bound.Take(ConnectionBound::kForOperators));
  EXPECT_FALSE(bound.Take(ConnectionBound::kForOperators));
}

TEST(ConnectionBound, ALoweredBoundWaitsForTheOpenOnes) {
  ConnectionBound bound(2);
  EXPECT_TRUE(bound.Take());
  EXPECT_TRUE(bound.Take());
  bound.SetMost(1);
  bound.GiveBack();
  EXPECT_FALSE(bound.Take());
  bound.GiveBack();
  EXPECT_TRUE(bound.Take());
}

}  // namespace
}  // namespace weir::cli
