// The request's codec against what protoc makes of proto/rls.proto.
#include "wire/rls/request.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "rls.pb.h"

namespace weir::rls {
namespace {

namespace pb = envoy::service::ratelimit::v3;

// The library complains of texts that are no UTF-8.
std::string Text() { return *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127)); }

pb::RateLimitRequest RandomRequest() {
  pb::RateLimitRequest request;
  request.set_domain(Text());
  request.set_hits_addend(*rc::gen::arbitrary<uint32_t>());
  const int descriptors = *rc::gen::inRange(0, 4);
  for (int i = 0; i < descriptors; ++i) {
    pb::RateLimitDescriptor& descriptor = *request.add_descriptors();
    const int entries = *rc::gen::inRange(0, 4);
    for (int j = 0; j < entries; ++j) {
      pb::RateLimitDescriptor::Entry& entry = *descriptor.add_entries();
      entry.set_key(Text());
      entry.set_value(Text());
    }
    if (*rc::gen::arbitrary<bool>()) {
      descriptor.mutable_limit()->set_requests_per_unit(*rc::gen::arbitrary<uint32_t>());
      descriptor.mutable_limit()->set_unit(static_cast<pb::RateLimitUnit>(*rc::gen::inRange(0, 9)));
    }
    if (*rc::gen::arbitrary<bool>())
      descriptor.mutable_hits_addend()->set_value(*rc::gen::arbitrary<uint64_t>());
    descriptor.set_is_negative_hits(*rc::gen::arbitrary<bool>());
  }
  return request;
}

std::string Serialized(const pb::RateLimitRequest& request) {
  std::string bytes;
  request.SerializePartialToString(&bytes);
  return bytes;
}

RC_GTEST_PROP(RlsRequest, ReadsWhatTheLibraryWrites, ()) {
  const pb::RateLimitRequest request = RandomRequest();
  const std::string bytes = Serialized(request);
  RequestReader reader;
  RC_ASSERT(reader.Read(bytes).has_value());
  RC_ASSERT(reader.domain() == request.domain());
  RC_ASSERT(reader.hits_addend() == request.hits_addend());
  RC_ASSERT(reader.descriptors().size() == static_cast<size_t>(request.descriptors_size()));
  for (int i = 0; i < request.descriptors_size(); ++i) {
    const pb::RateLimitDescriptor& expected = request.descriptors(i);
    const Descriptor& read = reader.descriptors()[static_cast<size_t>(i)];
    const auto entries = reader.entries(read);
    RC_ASSERT(entries.size() == static_cast<size_t>(expected.entries_size()));
    for (int j = 0; j < expected.entries_size(); ++j) {
      RC_ASSERT(entries[static_cast<size_t>(j)].key == expected.entries(j).key());
      RC_ASSERT(entries[static_cast<size_t>(j)].value == expected.entries(j).value());
    }
    RC_ASSERT(read.limit.has_value() == expected.has_limit());
    if (read.limit) {
      RC_ASSERT(read.limit->requests_per_unit == expected.limit().requests_per_unit());
      RC_ASSERT(read.limit->unit == static_cast<uint32_t>(expected.limit().unit()));
    }
    RC_ASSERT(read.hits_addend.has_value() == expected.has_hits_addend());
    if (read.hits_addend) RC_ASSERT(*read.hits_addend == expected.hits_addend().value());
    RC_ASSERT(read.is_negative_hits == expected.is_negative_hits());
  }
}

// Cut short, or with a byte changed: what the library takes is taken, what it refuses is refused.
// (It refuses texts that are no UTF-8, which we take: its own word on them is left out.)
RC_GTEST_PROP(RlsRequest, RefusesWhatTheLibraryRefuses, ()) {
  std::string bytes = Serialized(RandomRequest());
  RC_PRE(!bytes.empty());
  const size_t at = *rc::gen::inRange<size_t>(0, bytes.size());
  if (*rc::gen::arbitrary<bool>()) {
    bytes.resize(at);
  } else {
    bytes[at] = *rc::gen::arbitrary<char>();
  }
  pb::RateLimitRequest parsed;
  const bool library_takes = parsed.ParsePartialFromString(bytes);
  RequestReader reader;
  const bool taken = reader.Read(bytes).has_value();
  if (library_takes) {
    RC_ASSERT(taken);
    RC_ASSERT(reader.domain() == parsed.domain());
    RC_ASSERT(reader.descriptors().size() == static_cast<size_t>(parsed.descriptors_size()));
  }
}

TEST(RlsRequest, WhatIsNoMessageIsRefused) {
  RequestReader reader;
  for (const std::string& bytes :
       {std::string("\xff"),
        std::string("\x0a\x05"
                    "ab"),
        std::string("\x00\x00", 2), std::string("\x12\x02\x0a\x05"), std::string("\x0f"),
        std::string("\x0b\x14"), std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}) {
    EXPECT_FALSE(reader.Read(bytes).has_value());
  }
  // Unknown fields of every kind are passed over, groups included.
  const std::string unknown_fields(
      "\x50\x01\x5b\x0a\x01"
      "x\x53\x54\x5c\x65"
      "abcd\x69"
      "abcdefgh"
      "\x0a\x01"
      "d",
      26);
  EXPECT_TRUE(reader.Read(unknown_fields).has_value());
  EXPECT_EQ(reader.domain(), "d");
}

TEST(RlsRequest, AVarintOfTenBytesIsTakenAsTheLibraryTakesIt) {
  const std::string bytes("\x18\xee\xee\xee\xee\xee\xee\xee\xee\xee\x18");
  pb::RateLimitRequest parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  RequestReader reader;
  ASSERT_TRUE(reader.Read(bytes).has_value());
  EXPECT_EQ(reader.hits_addend(), parsed.hits_addend());
}

TEST(RlsRequest, TextThatIsNoUtf8IsTaken) {
  RequestReader reader;
  ASSERT_TRUE(reader.Read("\x0a\x02\xff\xfe").has_value());
  EXPECT_EQ(reader.domain(), "\xff\xfe");
}

TEST(RlsRequest, DescriptorsAreBounded) {
  pb::RateLimitRequest request;
  for (int i = 0; i < 256; ++i) request.add_descriptors()->add_entries()->set_key("k");
  RequestReader reader;
  EXPECT_TRUE(reader.Read(Serialized(request)).has_value());
  request.add_descriptors();
  EXPECT_EQ(reader.Read(Serialized(request)).error().message, "descriptors: more than 256");
  pb::RateLimitRequest wide;
  for (int i = 0; i < 5000; ++i) {
    if (i % 2500 == 0) wide.add_descriptors();
    wide.mutable_descriptors(i / 2500)->add_entries();
  }
  EXPECT_EQ(reader.Read(Serialized(wide)).error().message,
            "descriptors: more than 4096 entries in all");
}

}  // namespace
}  // namespace weir::rls
