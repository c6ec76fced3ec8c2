// Counts what an executable allocates, for the promise of the paths that allocate nothing. Include
// it in one source of a test: it replaces the global operator new.
//
//   const int64_t before = allocation_count;
//   Decide(call);
//   EXPECT_EQ(allocation_count, before);
//
// Thread safety: each thread counts its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {
thread_local int64_t allocation_count = 0;
}

// Not inlined: g++ 12 then takes malloc and delete for a mismatched pair.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocation_count;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocation_count;  // std::stable_sort's way.
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
