// A growable, contiguous byte buffer: bytes are appended at the end and consumed at the front. What
// an answer is built in, and what a socket reads into. Capacity is kept when it is emptied, so the
// steady state allocates nothing.
//
//   wire::Buffer out;
//   out.Append("HTTP/1.1 200 OK\r\n");
//   Write(socket, out.View());
//   out.Clear();
//
// Thread safety: none; one owner at a time. Views and pointers into it are valid until the next
// call that appends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace weir::wire {

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t capacity_bytes) { Reserve(capacity_bytes); }
  ~Buffer() { std::free(data_); }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        begin_(std::exchange(other.begin_, 0)),
        end_(std::exchange(other.end_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      std::free(data_);
      data_ = std::exchange(other.data_, nullptr);
      begin_ = std::exchange(other.begin_, 0);
      end_ = std::exchange(other.end_, 0);
      capacity_ = std::exchange(other.capacity_, 0);
    }
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const char* data() const { return data_ + begin_; }
  char* data() { return data_ + begin_; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  size_t capacity() const { return capacity_; }
  std::string_view View() const { return {data_ + begin_, end_ - begin_}; }

  // Appends a copy of the bytes. `bytes` must not point into this buffer.
  void Append(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(Prepare(bytes.size()), bytes.data(), bytes.size());
    end_ += bytes.size();
  }
  void Append(char byte) {
    *Prepare(1) = byte;
    ++end_;
  }
  // Appends the decimal digits of the value.
  void AppendDecimal(int64_t value);

  // Room for at least `bytes` after the end; what is written there counts once Commit says how much
  // of it.
  char* Prepare(size_t bytes) {
    if (capacity_ - end_ < bytes) [[unlikely]] {
      Grow(bytes);
    }
    return data_ + end_;
  }
  void Commit(size_t bytes) { end_ += bytes; }
  // Bytes that Prepare would give without growing.
  size_t spare() const { return capacity_ - end_; }

  // Drops the first `bytes` bytes; bytes <= size().
  void Consume(size_t bytes) {
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  // Keeps the first `bytes` bytes; bytes <= size().
  void Truncate(size_t bytes) { end_ = begin_ + bytes; }
  void Clear() { begin_ = end_ = 0; }
  // Empties it and gives its memory back when it holds more than `capacity_bytes`.
  void ClearAndShrink(size_t capacity_bytes) {
    Clear();
    if (capacity_ > capacity_bytes) {
      std::free(data_);
      data_ = nullptr;
      capacity_ = 0;
    }
  }
  void Reserve(size_t bytes) {
    if (capacity_ - end_ < bytes) Grow(bytes);
  }

 private:
  void Grow(size_t bytes);  // Moves the content to the front, and to a larger block if that is not
                            // enough.

  char* data_ = nullptr;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t capacity_ = 0;
};

}  // namespace weir::wire
