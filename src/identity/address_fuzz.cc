// Whatever text comes in: no crash, and what is taken for an address reads back as itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "identity/address.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weir::identity::IpAddress;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto address = IpAddress::ParseWithPort(text);
  if (!address) return 0;
  if (IpAddress::Parse(address->Text().view()) != address) std::abort();
  for (const int prefix : {1, 64, 127, 128}) {
    const std::string range(address->Grouped(prefix).view());
    const auto set = weir::identity::CidrSet::Create(std::span<const std::string>(&range, 1));
    // A group of IPv4-compatible bits may cover the mapped block; then the range is IPv6 and holds
    // the address still.
    if (!set || !set->Contains(*address)) std::abort();
  }
  return 0;
}
