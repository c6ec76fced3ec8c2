#include "wire/buffer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

namespace weir::wire {
namespace {

TEST(Buffer, IsAQueueOfBytes) {
  const bool ok = rc::check("like a string", [] {
    Buffer buffer;
    std::string model;
    for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 2000))) {
      if (step % 3 == 0) {
        const size_t bytes = static_cast<size_t>(step) % (model.size() + 1);
        buffer.Consume(bytes);
        model.erase(0, bytes);
      } else if (step % 7 == 0) {
        const size_t bytes = static_cast<size_t>(step) % (model.size() + 1);
        buffer.Truncate(bytes);
        model.resize(bytes);
      } else {
        const std::string piece(static_cast<size_t>(step), static_cast<char>('a' + step % 26));
        buffer.Append(piece);
        model += piece;
      }
      RC_ASSERT(buffer.View() == model);
      RC_ASSERT(buffer.size() == model.size());
    }
  });
  EXPECT_TRUE(ok);
}

TEST(Buffer, KeepsItsMemoryUntilToldNotTo) {
  Buffer buffer(1000);
  buffer.Append(std::string(900, 'x'));
  const size_t capacity = buffer.capacity();
  buffer.Clear();
  EXPECT_TRUE(buffer.empty());
  buffer.Append(std::string(900, 'y'));
  EXPECT_EQ(buffer.capacity(), capacity);
  buffer.ClearAndShrink(10);
  EXPECT_EQ(buffer.capacity(), 0u);
  buffer.Append("z");
  EXPECT_EQ(buffer.View(), "z");
}

TEST(Buffer, MovesAndWritesNumbers) {
  Buffer buffer;
  buffer.AppendDecimal(INT64_MIN);
  buffer.Append(' ');
  buffer.AppendDecimal(0);
  Buffer other = std::move(buffer);
  EXPECT_EQ(other.View(), "-9223372036854775808 0");
}

}  // namespace
}  // namespace weir::wire
