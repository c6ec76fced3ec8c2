// Response heads: what is accepted is framed in one way only, and pieces end like the whole.
#include "fuzz/check.h"
#include "wire/http1/response_head.h"

using namespace weir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = fuzz::Input(data, size);
  const size_t piece = 1 + fuzz::TakeByte(input);
  const http1::Method method = static_cast<http1::Method>(fuzz::TakeByte(input) % 10);
  const http1::HeadLimits limits{.bytes_max = 2048, .fields_max = 20};
  http1::ResponseHead head;
  const http1::ParseOutcome whole = http1::ParseResponseHead(input, limits, method, head);
  if (whole.complete()) {
    const std::string_view text = input.substr(0, whole.consumed);
    fuzz::Check(text.ends_with("\r\n\r\n") || head.headers.empty());
    fuzz::Check(head.status >= 100 && head.status <= 999);
    fuzz::Check(http1::IsFieldValue(head.reason) && fuzz::Within(head.reason, text));
    fuzz::Check(!head.keep_alive || head.body != http1::BodyKind::kUntilClose);
    fuzz::Check(!(head.interim() && head.body != http1::BodyKind::kNone));
    for (const http1::HeaderField& field : head.headers) {
      fuzz::Check(http1::IsToken(field.name) && http1::IsFieldValue(field.value));
    }
  }
  http1::HeadProgress progress;
  http1::ResponseHead again;
  http1::ParseOutcome pieces;
  for (size_t bytes = 0; pieces.need_more(); bytes += piece) {
    const std::string_view so_far = input.substr(0, bytes);
    pieces = http1::ParseResponseHead(so_far, limits, method, again, &progress);
    if (so_far.size() == input.size()) break;
  }
  fuzz::Check(pieces.complete() == whole.complete() && pieces.consumed == whole.consumed);
  return 0;
}
