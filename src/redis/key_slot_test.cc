#include "redis/key_slot.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::redis {
namespace {

// Values of the Redis Cluster specification, and of CLUSTER KEYSLOT.
TEST(KeySlot, HasTheSpecificationsValues) {
  EXPECT_EQ(Crc16("123456789"), 0x31c3);
  EXPECT_EQ(Crc16(""), 0);
  EXPECT_EQ(KeySlot("foo"), 12182);
  EXPECT_EQ(KeySlot("bar"), 5061);
  EXPECT_EQ(KeySlot("hello"), 866);
  EXPECT_EQ(KeySlot("somekey"), 11058);
  EXPECT_EQ(KeySlot("foo{hash_tag}"), 2515);
  EXPECT_EQ(KeySlot("bar{hash_tag}"), 2515);
  EXPECT_EQ(KeySlot("{user1000}.following"), KeySlot("{user1000}.followers"));
  EXPECT_EQ(KeySlot("{user1000}.following"), KeySlot("user1000"));
}

TEST(KeySlot, HashTagsAsSpecified) {
  EXPECT_EQ(HashTagOf("foo{}{bar}"), "foo{}{bar}");  // An empty tag is none.
  EXPECT_EQ(HashTagOf("foo{{bar}}zap"), "{bar");
  EXPECT_EQ(HashTagOf("foo{bar}{zap}"), "bar");
  EXPECT_EQ(HashTagOf("foo{bar"), "foo{bar");
  EXPECT_EQ(HashTagOf("foo}bar{"), "foo}bar{");
  EXPECT_EQ(HashTagOf("{}"), "{}");
  EXPECT_EQ(HashTagOf(""), "");
  EXPECT_EQ(HashTagOf("weir:1:{0011223344556677}:ab"), "0011223344556677");
}

TEST(KeySlot, AnyBytesAreKeys) {
  const std::string key("\0\xff\n{\0}", 6);
  EXPECT_EQ(KeySlot(key), Crc16(std::string_view("\0", 1)) % kSlots);
  EXPECT_LT(KeySlot(key), kSlots);
}

}  // namespace
}  // namespace weir::redis
