#include "base/frame_pool.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace weir {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kPooled = false;  // AddressSanitizer must see each frame's own life.
#else
constexpr bool kPooled = true;
#endif

constexpr std::size_t kGranuleBytes = 128;
constexpr std::size_t kClasses = 32;  // Frames up to 4 KiB are pooled.
constexpr uint32_t kFramesKeptPerClass = 256;

struct FreeNode {
  FreeNode* next;
};

struct FramePool {
  struct List {
    FreeNode* head = nullptr;
    uint32_t length = 0;
  };
  std::array<List, kClasses> lists;

  ~FramePool() {
    for (List& list : lists) {
      while (list.head != nullptr) {
        FreeNode* next = list.head->next;
        ::operator delete(static_cast<void*>(list.head));
        list.head = next;
      }
      list.length =
          kFramesKeptPerClass;  // Frames freed during thread exit go straight to the heap.
    }
  }
};

thread_local FramePool pool;

std::size_t ClassOf(std::size_t size) { return (size - 1) / kGranuleBytes; }

}  // namespace

void* AllocateFrame(std::size_t size) {
  const std::size_t size_class = ClassOf(size);
  if (!kPooled || size_class >= kClasses) return ::operator new(size);
  FramePool::List& list = pool.lists[size_class];
  if (list.head == nullptr) return ::operator new((size_class + 1) * kGranuleBytes);
  FreeNode* frame = list.head;
  list.head = frame->next;
  --list.length;
  return frame;
}

void FreeFrame(void* frame, std::size_t size) {
  const std::size_t size_class = ClassOf(size);
  if (kPooled && size_class < kClasses) {
    FramePool::List& list = pool.lists[size_class];
    if (list.length < kFramesKeptPerClass) {
      auto* node = static_cast<FreeNode*>(frame);
      node->next = list.head;
      list.head = node;
      ++list.length;
      return;
    }
  }
  ::operator delete(frame);
}

}  // namespace weir
