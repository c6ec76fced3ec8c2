// One 16-byte slot of the narrow table, read and replaced whole, so that a tag is never seen with another entry's state.
//
//   Word seen = LoadSlot(slot);
//   if (CasSlot(slot, seen, {seen.tag, next_state})) ...
//
// Thread safety: every function may race with every other on the same slot.
#pragma once

#include <bit>
#include <cstdint>

#include "core/int128.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace weir::store {

struct alignas(16) Word {
  uint64_t tag = 0;
  int64_t state = 0;

  friend bool operator==(const Word&, const Word&) = default;
};

#if defined(__SANITIZE_THREAD__)
#define WEIR_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_THREAD_SANITIZER 1
#endif
#endif

// Sequentially consistent: a full barrier on x86 (lock cmpxchg16b). The table's proof needs it of insertions.
inline bool CasSlot(Word* slot, Word expected, Word desired) {
  return __sync_bool_compare_and_swap(reinterpret_cast<core::Uint128*>(slot),
                                      std::bit_cast<core::Uint128>(expected),
                                      std::bit_cast<core::Uint128>(desired));
}

// True where an aligned 16-byte SSE load is one access: Intel's and AMD's manuals promise it for processors with AVX.
extern const bool kAtomicVectorLoad;

// Acquire.
inline Word LoadSlot(const Word* slot) {
#if defined(__x86_64__) && !defined(WEIR_THREAD_SANITIZER)
  if (kAtomicVectorLoad) [[likely]] {
    // In assembly, so that the compiler can neither split nor repeat it; the clobber makes it an acquire on x86.
    __m128i value;
    asm volatile("movdqa %1, %0" : "=x"(value) : "m"(*slot) : "memory");
    return std::bit_cast<Word>(value);
  }
#endif
  // A compare-and-swap of zero by zero changes nothing and returns what is there.
  return std::bit_cast<Word>(__sync_val_compare_and_swap(
      reinterpret_cast<core::Uint128*>(const_cast<Word*>(slot)), core::Uint128{0},
      core::Uint128{0}));
}

// The tag alone. Sequentially consistent, which costs nothing over acquire on x86: a scan after an insertion must see
// every insertion that came before (invariant 5 of the table).
inline uint64_t LoadTag(const Word* slot) { return __atomic_load_n(&slot->tag, __ATOMIC_SEQ_CST); }

}  // namespace weir::store
