// Requests of the rate limit service against what protoc makes of proto/rls.proto: whatever the
// library takes is read the same, and what is read lies within the message.
#include <google/protobuf/stubs/logging.h>

#include <string>

#include "fuzz/check.h"
#include "rls.pb.h"
#include "wire/rls/request.h"

using namespace weir;
namespace pb = envoy::service::ratelimit::v3;

namespace {

void CompareDescriptor(const rls::RequestReader& reader, const rls::Descriptor& read,
                       const pb::RateLimitDescriptor& expected) {
  const auto entries = reader.entries(read);
  fuzz::Check(entries.size() == static_cast<size_t>(expected.entries_size()));
  for (size_t i = 0; i < entries.size(); ++i) {
    fuzz::Check(entries[i].key == expected.entries(static_cast<int>(i)).key());
    fuzz::Check(entries[i].value == expected.entries(static_cast<int>(i)).value());
  }
  fuzz::Check(read.limit.has_value() == expected.has_limit());
  if (read.limit) {
    fuzz::Check(read.limit->requests_per_unit == expected.limit().requests_per_unit());
    fuzz::Check(read.limit->unit == static_cast<uint32_t>(expected.limit().unit()));
  }
  fuzz::Check(read.hits_addend.has_value() == expected.has_hits_addend());
  if (read.hits_addend) fuzz::Check(*read.hits_addend == expected.hits_addend().value());
  fuzz::Check(read.is_negative_hits == expected.is_negative_hits());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto silent = google::protobuf::SetLogHandler(nullptr);
  (void)silent;
  const std::string_view input = fuzz::Input(data, size);
  rls::RequestReader reader;
  const bool taken = reader.Read(input).has_value();
  pb::RateLimitRequest expected;
  if (!expected.ParseFromArray(data, static_cast<int>(size)))
    return 0;  // Or its texts are no UTF-8.
  if (!taken) {
    fuzz::Check(expected.descriptors_size() > 256 || size > 4096);  // Beyond our bounds.
    return 0;
  }
  fuzz::Check(reader.domain() == expected.domain());
  fuzz::Check(reader.domain().empty() || fuzz::Within(reader.domain(), input));
  fuzz::Check(reader.hits_addend() == expected.hits_addend());
  fuzz::Check(reader.descriptors().size() == static_cast<size_t>(expected.descriptors_size()));
  for (int i = 0; i < expected.descriptors_size(); ++i)
    CompareDescriptor(reader, reader.descriptors()[static_cast<size_t>(i)],
                      expected.descriptors(i));
  return 0;
}
