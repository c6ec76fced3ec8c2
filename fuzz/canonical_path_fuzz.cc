// Paths: the canonical form is its own canonical form and holds nothing that it must not.
#include "fuzz/check.h"
#include "wire/uri/canonical_path.h"

using namespace weir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = fuzz::Input(data, size);
  std::string scratch, scratch_again;
  const uri::CanonicalOutcome once = uri::CanonicalPath(input, scratch);
  if (!once.ok()) return 0;
  fuzz::Check(once.path.starts_with('/'));
  fuzz::Check(once.path.find("//") == std::string_view::npos);
  for (const char c : once.path) fuzz::Check(c > ' ' && c < 0x7f && c != '?' && c != '#');
  const std::string closed = std::string(once.path) + "/";
  fuzz::Check(closed.find("/./") == std::string::npos && closed.find("/../") == std::string::npos);
  const uri::CanonicalOutcome twice = uri::CanonicalPath(once.path, scratch_again);
  fuzz::Check(twice.ok() && twice.path.data() == once.path.data() &&
              twice.path.size() == once.path.size());
  return 0;
}
