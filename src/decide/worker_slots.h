// WorkerSlots: a fixed set of workers that any number of threads share. A thread takes the slot it
// had last, which is nearly always free; with more threads at work than slots, it looks for
// another.
//
//   WorkerSlots slots(engine, 16);
//   WorkerSlots::Lease lease = slots.Take();
//   lease->Decide(...);
//
// Thread safety: Take may be called from any number of threads. It blocks (by yielding) only while
// every slot is taken.
// Invariant: a slot's worker is used only between an exchange of `taken` from false to true
// (acquire: what the slot's last user wrote is seen) and the store of false (release: what this
// user wrote is published).
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>

#include "decide/engine.h"

namespace weir::decide {

class WorkerSlots {
  struct alignas(64) Slot {
    std::atomic<bool> taken{false};
    std::unique_ptr<Worker> worker;
  };

 public:
  class Lease {
   public:
    explicit Lease(Slot& slot) : slot_(slot) {}
    ~Lease() { slot_.taken.store(false, std::memory_order_release); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Worker* operator->() const { return slot_.worker.get(); }
    Worker& operator*() const { return *slot_.worker; }

   private:
    Slot& slot_;
  };

  // REQUIRES: the engine has at least `count` shards and no other workers; count is a power of two.
  WorkerSlots(Engine& engine, size_t count)
      : mask_(count - 1), slots_(std::make_unique<Slot[]>(count)) {
    for (size_t i = 0; i < count; ++i) slots_[i].worker = std::make_unique<Worker>(engine, i);
  }

  Lease Take() {
    static thread_local size_t preferred = std::hash<std::thread::id>{}(std::this_thread::get_id());
    for (size_t tries = 0;; ++tries) {
      Slot& slot = slots_[preferred & mask_];
      if (!slot.taken.exchange(true, std::memory_order_acquire)) return Lease(slot);
      ++preferred;
      if (tries > mask_) std::this_thread::yield();
    }
  }

 private:
  const size_t mask_;
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace weir::decide
