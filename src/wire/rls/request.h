// What Envoy asks the rate limit service: envoy.service.ratelimit.v3.RateLimitRequest, read in
// place (proto/rls.proto has the facts).
//
//   rls::RequestReader reader;                       // one per loop: it keeps its memory
//   if (auto read = reader.Read(bytes); !read) return Refuse(read.error());
//   for (const rls::Descriptor& descriptor : reader.descriptors())
//   Match(reader.entries(descriptor));
//
// Thread safety: none. Views are valid as long as the bytes and until the next Read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::rls {

// RateLimitResponse.RateLimit.Unit, and RateLimitUnit of the request.
enum class Unit : uint8_t {
  kUnknown = 0,
  kSecond = 1,
  kMinute = 2,
  kHour = 3,
  kDay = 4,
  kMonth = 5,
  kYear = 6,
  kWeek = 7,
};

struct Entry {
  std::string_view key;
  std::string_view value;
};

struct LimitOverride {
  uint32_t requests_per_unit = 0;
  uint32_t unit = 0;  // As it came; Unit names those that are known.
};

struct Descriptor {
  uint32_t first_entry = 0;
  uint32_t entry_count = 0;
  std::optional<LimitOverride> limit;
  std::optional<uint64_t> hits_addend;
  bool is_negative_hits = false;
};

class RequestReader {
 public:
  // kInvalidArgument: what is no such message, or has more descriptors or entries than anybody
  // sends. Texts are taken as they are, UTF-8 or not: Envoy passes on what clients send, and a
  // service that refuses it fails open.
  Result<void> Read(std::string_view message);

  std::string_view domain() const { return domain_; }
  uint32_t hits_addend() const { return hits_addend_; }  // 0: not given.
  std::span<const Descriptor> descriptors() const { return descriptors_; }
  std::span<const Entry> entries(const Descriptor& descriptor) const {
    return std::span(entries_).subspan(descriptor.first_entry, descriptor.entry_count);
  }

 private:
  bool ReadDescriptor(std::string_view message);

  std::string_view domain_;
  uint32_t hits_addend_ = 0;
  std::vector<Descriptor> descriptors_;
  std::vector<Entry> entries_;
};

}  // namespace weir::rls
