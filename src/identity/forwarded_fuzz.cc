// Whatever the lines hold: no crash; an untrusted peer stays itself; and what the nearest trusted
// proxy appended wins over all that stands to its left.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "identity/forwarded.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::identity;
  const std::string text(reinterpret_cast<const char*>(data), size);
  static const CidrSet trusted = CidrSet::Create(std::vector<std::string>{"127.0.0.0/8"}).value();
  const IpAddress proxy = *IpAddress::Parse("127.0.0.1");
  const IpAddress stranger = *IpAddress::Parse("203.0.113.7");

  ForwardedLines as_sent;
  as_sent.AddForwardedFor(text);
  ForwardedLines structured;
  structured.AddForwarded(text);
  ClientAddress(proxy, trusted, as_sent);
  ClientAddress(proxy, trusted, structured);
  if (!(ClientAddress(stranger, trusted, as_sent) == stranger)) std::abort();
  if (!(ClientAddress(stranger, trusted, structured) == stranger)) std::abort();

  const std::string appended = text + ", 198.51.100.9";
  ForwardedLines one_line;
  one_line.AddForwardedFor(appended);
  ForwardedLines two_lines;
  two_lines.AddForwarded(text);
  two_lines.AddForwarded("for=198.51.100.9");
  const IpAddress named = *IpAddress::Parse("198.51.100.9");
  if (!(ClientAddress(proxy, trusted, one_line) == named)) std::abort();
  if (!(ClientAddress(proxy, trusted, two_lines) == named)) std::abort();
  return 0;
}
