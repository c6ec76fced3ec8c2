#include "wire/http2/session_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/frame_pool.h"

namespace weir::http2 {
namespace {

// Before each block stands its size, which the pool asks for.
constexpr size_t kFrontBytes = alignof(std::max_align_t);

void* Allocate(size_t bytes, void*) {
  auto* const front = static_cast<char*>(AllocateFrame(kFrontBytes + bytes));
  std::memcpy(front, &bytes, sizeof bytes);
  return front + kFrontBytes;
}

size_t SizeOf(const void* block) {
  size_t bytes = 0;
  std::memcpy(&bytes, static_cast<const char*>(block) - kFrontBytes, sizeof bytes);
  return bytes;
}

void Free(void* block, void*) {
  if (block == nullptr) return;
  FreeFrame(static_cast<char*>(block) - kFrontBytes, kFrontBytes + SizeOf(block));
}

void* AllocateZeroed(size_t count, size_t bytes, void*) {
  if (bytes != 0 && count > (SIZE_MAX - kFrontBytes) / bytes) return nullptr;
  void* const block = Allocate(count * bytes, nullptr);
  std::memset(block, 0, count * bytes);
  return block;
}

void* Reallocate(void* block, size_t bytes, void*) {
  void* const moved = Allocate(bytes, nullptr);
  if (block != nullptr) {
    std::memcpy(moved, block, std::min(bytes, SizeOf(block)));
    Free(block, nullptr);
  }
  return moved;
}

}  // namespace

nghttp2_mem* SessionMemory() {
  static nghttp2_mem memory = {nullptr, Allocate, Free, AllocateZeroed, Reallocate};
  return &memory;
}

}  // namespace weir::http2
