// One 16-byte slot of the narrow table, read and replaced whole, so that a tag is never seen with
// another entry's state.
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
#include <smmintrin.h>
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

// Sequentially consistent: a full barrier on x86 (lock cmpxchg16b). The table's proof needs it of
// insertions.
inline bool CasSlot(Word* slot, Word expected, Word desired) {
#if defined(__x86_64__) && !defined(WEIR_THREAD_SANITIZER)
  // The builtin takes its operands through the stack, and the locked instruction waits for those
  // stores.
  bool swapped;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(swapped), "+m"(*slot), "+a"(expected.tag), "+d"(expected.state)
               : "b"(desired.tag), "c"(desired.state)
               : "memory");
  return swapped;
#else
  return __sync_bool_compare_and_swap(reinterpret_cast<core::Uint128*>(slot),
                                      std::bit_cast<core::Uint128>(expected),
                                      std::bit_cast<core::Uint128>(desired));
#endif
}

// True where an aligned 16-byte SSE load is one access: Intel's and AMD's manuals promise it for
// processors with AVX.
extern const bool kAtomicVectorLoad;

// Acquire.
inline Word LoadSlot(const Word* slot) {
#if defined(__x86_64__) && !defined(WEIR_THREAD_SANITIZER)
  if (kAtomicVectorLoad) [[likely]] {
    // In assembly, so that the compiler can neither split nor repeat it; the clobber makes it an
    // acquire on x86.
    __m128i value;
    asm volatile("movdqa %1, %0" : "=x"(value) : "m"(*slot) : "memory");
    return std::bit_cast<Word>(value);
  }
#endif
  // A compare-and-swap of zero by zero changes nothing and returns what is there.
  return std::bit_cast<Word>(
      __sync_val_compare_and_swap(reinterpret_cast<core::Uint128*>(const_cast<Word*>(slot)),
                                  core::Uint128{0}, core::Uint128{0}));
}

// The state alone, perhaps of another entry than a tag that was read before: good for a
// compare-and-swap of the whole slot only.
inline int64_t PeekState(const Word* slot) {
  return __atomic_load_n(&slot->state, __ATOMIC_RELAXED);
}

// The tag alone. Sequentially consistent, which costs nothing over acquire on x86: a scan after an
// insertion must see every insertion that came before (invariant 5 of the table).
inline uint64_t LoadTag(const Word* slot) { return __atomic_load_n(&slot->tag, __ATOMIC_SEQ_CST); }

// Which of four adjacent slots have a tag that equals `tag` in all but its low `kIgnoredBits` bits,
// as a bit mask. Each tag is seen as by LoadTag. Without a branch per slot: which of the four it is
// cannot be predicted.
template <int kIgnoredBits>
inline unsigned MatchTags(const Word* slots, uint64_t tag) {
#if defined(__x86_64__) && !defined(WEIR_THREAD_SANITIZER)
  // In assembly for the compiler's sake only; each 8-byte half of an aligned vector load is one
  // access on every x86-64.
  __m128i first, second;
  asm volatile(
      "movdqa (%2), %0\n\t"
      "movdqa 32(%2), %1\n\t"
      "punpcklqdq 16(%2), %0\n\t"
      "punpcklqdq 48(%2), %1"
      : "=&x"(first), "=&x"(second)
      : "r"(slots)
      : "memory");
  __m128i wanted = _mm_set1_epi64x(static_cast<int64_t>(tag));
  if constexpr (kIgnoredBits != 0) {
    const __m128i zero = _mm_setzero_si128();
    first = _mm_srli_epi64(_mm_xor_si128(first, wanted), kIgnoredBits);
    second = _mm_srli_epi64(_mm_xor_si128(second, wanted), kIgnoredBits);
    wanted = zero;
  }
  const __m128i matches =
      _mm_packs_epi32(_mm_cmpeq_epi64(first, wanted), _mm_cmpeq_epi64(second, wanted));
  return static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(matches)));
#else
  unsigned match = 0;
  for (int i = 0; i < 4; ++i) {
    match |= unsigned{(LoadTag(&slots[i]) ^ tag) >> kIgnoredBits == 0} << i;
  }
  return match;
#endif
}

}  // namespace weir::store
