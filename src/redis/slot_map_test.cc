#include "redis/slot_map.h"

#include <gtest/gtest.h>

#include "redis/one_reply_test.h"

namespace weir::redis {
namespace {

const Address kAsked{"10.0.0.1", 7000};

// Three masters, one with a replica; the last range has a node without a host, and metadata.
constexpr std::string_view kSlotsReply =
    "*3\r\n"
    "*4\r\n:0\r\n:5460\r\n*3\r\n$8\r\n10.0.0.1\r\n:7000\r\n$1\r\na\r\n"
    "*3\r\n$8\r\n10.0.0.4\r\n:7003\r\n$1\r\nd\r\n"
    "*3\r\n:5461\r\n:10922\r\n*4\r\n$8\r\n10.0.0.2\r\n:7001\r\n$1\r\nb\r\n*2\r\n$8\r\nhostname\r\n$"
    "1\r\nx\r\n"
    "*3\r\n:10923\r\n:16383\r\n*3\r\n$0\r\n\r\n:7002\r\n$1\r\nc\r\n";

TEST(SlotMap, ReadsClusterSlots) {
  const SlotMap map = SlotMap::Parse(Reply(kSlotsReply), kAsked).value();
  ASSERT_EQ(map.masters().size(), 3u);
  EXPECT_EQ(map.replicas(), (std::vector<Address>{{"10.0.0.4", 7003}}));
  EXPECT_EQ(*map.OwnerOf(0), (Address{"10.0.0.1", 7000}));
  EXPECT_EQ(*map.OwnerOf(5460), (Address{"10.0.0.1", 7000}));
  EXPECT_EQ(*map.OwnerOf(5461), (Address{"10.0.0.2", 7001}));
  EXPECT_EQ(*map.OwnerOf(16383), (Address{"10.0.0.1", 7002}));  // The host that was asked.
  EXPECT_EQ(map.slots_owned(), kSlots);
}

TEST(SlotMap, SlotsMayHaveNoOwner) {
  const SlotMap map = SlotMap::Parse(Reply("*2\r\n*3\r\n:10\r\n:12\r\n*2\r\n$1\r\nh\r\n:1\r\n"
                                           "*3\r\n:13\r\n:14\r\n*2\r\n$1\r\n?\r\n:1\r\n"),
                                     kAsked)
                          .value();
  EXPECT_EQ(map.OwnerOf(9), nullptr);
  EXPECT_EQ(*map.OwnerOf(10), (Address{"h", 1}));
  EXPECT_EQ(map.OwnerOf(13), nullptr);  // Its owner's host is not known.
  EXPECT_EQ(map.slots_owned(), 3);
  EXPECT_EQ(SlotMap().OwnerOf(0), nullptr);
}

TEST(SlotMap, MovesOneSlot) {
  SlotMap map = SlotMap::Parse(Reply(kSlotsReply), kAsked).value();
  const SlotMap before = map;
  EXPECT_TRUE(map.SameOwners(before));
  map.Move(100, {"10.0.0.2", 7001});
  EXPECT_EQ(*map.OwnerOf(100), (Address{"10.0.0.2", 7001}));
  EXPECT_EQ(*map.OwnerOf(101), (Address{"10.0.0.1", 7000}));
  EXPECT_EQ(map.masters().size(), 3u);
  EXPECT_FALSE(map.SameOwners(before));
  map.Move(101, {"10.0.0.9", 7009});
  EXPECT_EQ(map.masters().size(), 4u);
  EXPECT_EQ(*map.OwnerOf(101), (Address{"10.0.0.9", 7009}));
}

TEST(SlotMap, TheNumberOfNodesIsBounded) {
  SlotMap map;
  for (int i = 0; i < 2000; ++i) map.Move(7, {"h", 1 + i});
  EXPECT_EQ(map.masters().size(), SlotMap::kNodesMax);
  EXPECT_EQ(*map.OwnerOf(7), (Address{"h", 1024}));
}

TEST(SlotMap, RefusesWhatIsMalformed) {
  for (const std::string_view wire :
       {"+OK\r\n", "_\r\n", "*1\r\n:1\r\n", "*1\r\n*2\r\n:0\r\n:1\r\n",
        "*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\nh\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:1\r\n",
        "*1\r\n*3\r\n+0\r\n:1\r\n*2\r\n$1\r\nh\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\nh\r\n:0\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\nh\r\n:65536\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n:1\r\n:1\r\n", "*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\nh\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n$1\r\nh\r\n"}) {
    const auto map = SlotMap::Parse(Reply(wire), kAsked);
    ASSERT_FALSE(map.has_value()) << wire;
    EXPECT_EQ(map.error().message, "10.0.0.1:7000: the answer to CLUSTER SLOTS is malformed");
  }
  EXPECT_EQ(SlotMap::Parse(Reply("*0\r\n"), kAsked).error().message,
            "10.0.0.1:7000: the Cluster has no slots yet");
}

}  // namespace
}  // namespace weir::redis
