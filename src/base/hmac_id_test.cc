#include "base/hmac_id.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace weir {
namespace {

constexpr std::string_view kSecret = "0123456789abcdef0123456789abcdef";

// Expected values were computed apart from OpenSSL, with Python's hmac module over kind +
// credential.
TEST(IdHasher, IsHmacSha256OfKindAndCredential) {
  const IdHasher hasher = IdHasher::Create(kSecret).value();
  EXPECT_EQ(hasher.Hash(IdKind::kKey, "sk-live-1").view(), "key:358N2BH7x1mzLIXVSvTQfQ");
  EXPECT_EQ(hasher.Hash(IdKind::kJwt, "sk-live-1").view(), "jwt:jvWm5QfdgvNOd3nrj26vyg");
  EXPECT_EQ(hasher.Hash(IdKind::kHeader, "sk-live-1").view(), "header:vyjxWhpRfzKZe3PFW2BCmw");
  EXPECT_EQ(hasher.Hash(IdKind::kIp, "sk-live-1").view(), "ip:Grr8JJVHQ6z68FsJBBMwzA");
  EXPECT_EQ(hasher.Hash(IdKind::kAttribute, "sk-live-1").view(), "attr:Xpy6xPG5ez_l0PKb6iMgeg");
}

TEST(IdHasher, Case71_AnyBytesGiveABoundedId) {
  const IdHasher hasher = IdHasher::Create(kSecret).value();
  EXPECT_EQ(hasher.Hash(IdKind::kKey, "").view(), "key:qFZjNZumi_AzvH6sYrLLzA");
  EXPECT_EQ(hasher.Hash(IdKind::kKey, std::string_view("a\0b\xff", 4)).view(),
            "key:51Sn8VrohE40EEQZrvQGYg");
  std::set<std::string> ids;
  const std::string keys[] = {
      "",         "a\r\nb",    std::string(1, '\0'),   "\xff",
      "\xc3\xa9", "e\xcc\x81", std::string(4096, 'k'), std::string(1 << 20, 'k')};
  for (const std::string& key : keys) {
    const ClientId id = hasher.Hash(IdKind::kKey, key);
    EXPECT_EQ(id.view().size(), 26u);
    ids.emplace(id.view());
  }
  EXPECT_EQ(ids.size(), 8u);
}

TEST(IdHasher, RefusesAShortSecret) {
  const Result<IdHasher> hasher = IdHasher::Create("fifteen bytes..");
  ASSERT_FALSE(hasher.has_value());
  EXPECT_EQ(hasher.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(hasher.error().message, "identity.secret: must have at least 16 bytes");
}

TEST(IdHasher, RandomSecretsDiffer) {
  const IdHasher one = IdHasher::CreateRandom().value();
  const IdHasher two = IdHasher::CreateRandom().value();
  EXPECT_EQ(one.Hash(IdKind::kKey, "k"), one.Hash(IdKind::kKey, "k"));
  EXPECT_NE(one.Hash(IdKind::kKey, "k"), two.Hash(IdKind::kKey, "k"));
}

TEST(IdCache, GivesTheHashersIdsAndAsksOnce) {
  const IdHasher hasher = IdHasher::Create(kSecret).value();
  IdCache cache(hasher);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(cache.Get(IdKind::kKey, "sk-live-1").view(), "key:358N2BH7x1mzLIXVSvTQfQ");
    EXPECT_EQ(cache.Get(IdKind::kJwt, "sk-live-1").view(), "jwt:jvWm5QfdgvNOd3nrj26vyg");
    EXPECT_EQ(cache.Get(IdKind::kKey, "").view(), "key:qFZjNZumi_AzvH6sYrLLzA");
  }
  EXPECT_EQ(cache.misses(), 3u);
}

TEST(IdCache, StaysRightWhenFarMoreKeysComeThanFit) {
  const IdHasher hasher = IdHasher::Create(kSecret).value();
  IdCache cache(hasher, 4);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 200; ++i) {
      const std::string key = "key-" + std::to_string(i);
      ASSERT_EQ(cache.Get(IdKind::kKey, key), hasher.Hash(IdKind::kKey, key));
    }
  }
  EXPECT_GE(cache.misses(), 392u);  // At most the four that fit are hits in the second round.
}

TEST(IdCache, TwoCredentialsOfOneSetBothStay) {
  const IdHasher hasher = IdHasher::Create(kSecret).value();
  IdCache cache(hasher, 2);  // One set of two.
  for (int i = 0; i < 10; ++i) {
    cache.Get(IdKind::kKey, "a");
    cache.Get(IdKind::kKey, "b");
  }
  EXPECT_EQ(cache.misses(), 2u);
}

}  // namespace
}  // namespace weir
