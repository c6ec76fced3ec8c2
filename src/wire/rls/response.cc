#include "wire/rls/response.h"

namespace weir::rls {

using protobuf::Writer;

void ResponseWriter::Status(const DescriptorStatus& status) {
  const Writer::Nested message(writer_, 2);
  writer_.Varint(1, static_cast<uint64_t>(status.code));
  if (status.limit) {
    const Writer::Nested limit(writer_, 2);
    writer_.Varint(1, status.limit->requests_per_unit);
    writer_.Varint(2, static_cast<uint64_t>(status.limit->unit));
    writer_.Bytes(3, status.limit->name);
  }
  writer_.Varint(3, status.limit_remaining);
  if (status.until_reset_ns) {
    constexpr int64_t kSecond = 1'000'000'000;
    const Writer::Nested duration(writer_, 4);  // google.protobuf.Duration
    writer_.Varint(1, static_cast<uint64_t>(*status.until_reset_ns / kSecond));
    writer_.Varint(2, static_cast<uint64_t>(*status.until_reset_ns % kSecond));
  }
}

void ResponseWriter::ResponseHeader(std::string_view name, std::string_view value) {
  writer_.Pair(3, name, value);
}

// Struct is a map of Values: entries of {key = 1, value = 2}. A message field that comes several
// times is merged, so that each member may have a Struct of its own.
template <typename WriteValue>
void ResponseWriter::MetadataMember(std::string_view name, WriteValue&& write_value) {
  const Writer::Nested structure(writer_, 6);
  const Writer::Nested entry(writer_, 1);
  writer_.Bytes(1, name);
  const Writer::Nested value(writer_, 2);
  write_value();
}

void ResponseWriter::Metadata(std::string_view name, std::string_view text) {
  MetadataMember(name, [&] { writer_.BytesAlways(3, text); });
}

void ResponseWriter::Metadata(std::string_view name, double number) {
  MetadataMember(name, [&] { writer_.Double(2, number); });
}

}  // namespace weir::rls
