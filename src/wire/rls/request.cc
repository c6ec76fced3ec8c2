#include "wire/rls/request.h"

#include "wire/protobuf/reader.h"

namespace weir::rls {
namespace {

using protobuf::Reader;
using protobuf::WireType;

constexpr size_t kDescriptorsMax = 256;
constexpr size_t kEntriesMax = 4096;  // Of a call.

// A nested message that comes in pieces is the sum of them, as in the library.
bool ReadEntry(std::string_view message, Entry& entry) {
  Reader reader(message);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kLength)) entry.key = reader.bytes();
    if (reader.Is(2, WireType::kLength)) entry.value = reader.bytes();
  }
  return reader.ok();
}

bool ReadLimit(std::string_view message, LimitOverride& limit) {
  Reader reader(message);
  while (reader.Next()) {
    const auto value = static_cast<uint32_t>(reader.value());
    if (reader.Is(1, WireType::kVarint)) limit.requests_per_unit = value;
    if (reader.Is(2, WireType::kVarint)) limit.unit = value;
  }
  return reader.ok();
}

// google.protobuf.UInt64Value
bool ReadUInt64Value(std::string_view message, uint64_t& value) {
  Reader reader(message);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kVarint)) value = reader.value();
  }
  return reader.ok();
}

}  // namespace

Result<void> RequestReader::Read(std::string_view message) {
  domain_ = {};
  hits_addend_ = 0;
  descriptors_.clear();
  entries_.clear();
  Reader reader(message);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kLength)) domain_ = reader.bytes();
    if (reader.Is(3, WireType::kVarint)) hits_addend_ = static_cast<uint32_t>(reader.value());
    if (!reader.Is(2, WireType::kLength)) continue;
    if (descriptors_.size() == kDescriptorsMax)
      return InvalidArgument("descriptors: more than 256");
    if (!ReadDescriptor(reader.bytes()))
      return InvalidArgument("descriptors: not of a RateLimitDescriptor");
    if (entries_.size() > kEntriesMax)
      return InvalidArgument("descriptors: more than 4096 entries in all");
  }
  if (!reader.ok()) return InvalidArgument("the message is no RateLimitRequest");
  return {};
}

bool RequestReader::ReadDescriptor(std::string_view message) {
  Descriptor descriptor{.first_entry = static_cast<uint32_t>(entries_.size())};
  Reader reader(message);
  while (reader.Next()) {
    bool ok = true;
    if (reader.Is(1, WireType::kLength)) {
      if (entries_.size() > kEntriesMax) return true;  // Too many, which Read says.
      ok = ReadEntry(reader.bytes(), entries_.emplace_back());
    } else if (reader.Is(2, WireType::kLength)) {
      if (!descriptor.limit) descriptor.limit.emplace();
      ok = ReadLimit(reader.bytes(), *descriptor.limit);
    } else if (reader.Is(3, WireType::kLength)) {
      if (!descriptor.hits_addend) descriptor.hits_addend = 0;
      ok = ReadUInt64Value(reader.bytes(), *descriptor.hits_addend);
    } else if (reader.Is(4, WireType::kVarint)) {
      descriptor.is_negative_hits = reader.value() != 0;
    }
    if (!ok) return false;
  }
  descriptor.entry_count = static_cast<uint32_t>(entries_.size()) - descriptor.first_entry;
  descriptors_.push_back(descriptor);
  return reader.ok();
}

}  // namespace weir::rls
