// SharedNames: what counters are called on the shared store, kept for the keys in use, since a name
// is two HMACs and a decision out of a lease is ten times faster than those.
//
//   SharedNames::Name& name = names.At(local_key);
//   if (name.local != local_key) name = {local_key, …};
//
// A name follows from the secret and from what the local key hashes, neither of which changes while
// a process runs, so no policy makes an entry stale.
//
// Thread safety: one thread. A fixed number of entries, 48 bytes each; a newcomer takes the place
// of whoever has it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/keyed_hash.h"

namespace weir::decide {

class SharedNames {
 public:
  static constexpr size_t kNames = 4096;  // A power of two.

  struct Name {
    base::Key128 local;  // Under the process's own secret. Zero: free.
    base::Key128 key;
    uint64_t tag = 0;
  };

  // Where the name of this counter is, or belongs.
  Name& At(base::Key128 local) {
    if (names_.empty()) names_.resize(kNames);
    return names_[local.lo & (kNames - 1)];
  }

 private:
  std::vector<Name> names_;  // Made when first asked for.
};

}  // namespace weir::decide
