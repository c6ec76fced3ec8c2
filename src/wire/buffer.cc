#include "wire/buffer.h"

#include <algorithm>
#include <charconv>

namespace weir::wire {

void Buffer::AppendDecimal(int64_t value) {
  char* to = Prepare(20);
  end_ += static_cast<size_t>(std::to_chars(to, to + 20, value).ptr - to);
}

void Buffer::Grow(size_t bytes) {
  const size_t used = size();
  // Moving to the front is worth it only when at least half comes free, else many small appends
  // would move the same bytes again and again.
  if (begin_ >= capacity_ / 2 && capacity_ - used >= bytes && capacity_ > 0) {
    std::memmove(data_, data_ + begin_, used);
  } else {
    const size_t capacity = std::max({capacity_ * 2, used + bytes, size_t{256}});
    char* data = static_cast<char*>(std::malloc(capacity));
    if (data == nullptr) std::abort();
    if (used > 0) std::memcpy(data, data_ + begin_, used);
    std::free(data_);
    data_ = data;
    capacity_ = capacity;
  }
  begin_ = 0;
  end_ = used;
}

}  // namespace weir::wire
