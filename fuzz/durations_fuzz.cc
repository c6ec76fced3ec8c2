// Durations: what is read survives being written and read again.
#include "fuzz/check.h"
#include "wire/durations.h"

using namespace weir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto duration = wire::ParseDuration(fuzz::Input(data, size));
  if (!duration) {
    fuzz::Check(!duration.error().message.empty());
    return 0;
  }
  fuzz::Check(duration->count() >= 0);
  const auto again = wire::ParseDuration(wire::FormatDuration(*duration));
  fuzz::Check(again && *again == *duration);
  return 0;
}
