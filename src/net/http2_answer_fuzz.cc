// Answers of HTTP/1.1 taken as HTTP/2: pieces give what the whole gives, names are in lower case,
// and what speaks of the connection stays.
#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/check.h"
#include "net/http2_answer.h"

using namespace weir;

namespace {

constexpr size_t kRoomBytes = 64;

std::string Take(std::string_view input, size_t piece, http1::Method method) {
  net::Http2Answer answer;
  answer.Start(method);
  std::string text, body;
  std::vector<http2::Header> fields;
  const auto take = [&] {
    for (;;) {
      if (!answer.has_head()) {
        const net::Http2Answer::Head head = answer.TakeHead(fields);
        if (head == net::Http2Answer::Head::kMalformed) return false;
        if (head == net::Http2Answer::Head::kNone) return true;
        for (const http2::Header& field : fields) {
          fuzz::Check(
              std::ranges::none_of(field.name, [](char c) { return c >= 'A' && c <= 'Z'; }));
          fuzz::Check(field.name != "connection" && field.name != "transfer-encoding");
          text += std::string(field.name) + ": " + std::string(field.value) + "\n";
        }
        continue;
      }
      char room[kRoomBytes];
      const http2::Piece taken = answer.Read(room);
      fuzz::Check(taken.bytes <= kRoomBytes);
      body.append(room, taken.bytes);
      if (taken.then == http2::Piece::Then::kMore) {
        fuzz::Check(taken.bytes > 0);
        continue;
      }
      if (taken.then == http2::Piece::Then::kLater) return true;
      if (taken.then == http2::Piece::Then::kTrailers) {
        for (const http2::Header& field : answer.trailers()) text += std::string(field.name) + "\n";
      }
      text += "ends " + std::to_string(static_cast<int>(taken.then));
      return false;
    }
  };
  bool more = true;
  while (more && !input.empty()) {
    const size_t taken = answer.Append(input.substr(0, piece));
    fuzz::Check(taken == std::min(piece, input.size()));  // It is taken as it comes.
    input.remove_prefix(taken);
    more = take();
  }
  answer.FinishInput();
  if (more) take();
  return text + body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = fuzz::Input(data, size);
  const size_t piece = 1 + fuzz::TakeByte(input);
  const http1::Method method = piece % 2 == 0 ? http1::Method::kHead : http1::Method::kGet;
  fuzz::Check(Take(input, piece, method) == Take(input, 32 * 1024, method));
  return 0;
}
