// Memory for coroutine frames: a small per-thread free list for each size class, so that a task per
// connection or per request costs a few nanoseconds and no lock. A frame may be freed by another
// thread than the one that made it; it then joins that thread's list. Lists are bounded; what goes
// beyond returns to the heap.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <cstddef>

namespace weir {

// At least `size` bytes, aligned for any object. Aborts when memory is out.
void* AllocateFrame(std::size_t size);

// Gives back what AllocateFrame(size) returned; `size` is the same.
void FreeFrame(void* frame, std::size_t size);

}  // namespace weir
