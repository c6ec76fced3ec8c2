// Request heads: what is accepted holds what the parser promises, and pieces end like the whole.
#include "fuzz/check.h"
#include "wire/http1/request_head.h"

using namespace weir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = fuzz::Input(data, size);
  const size_t piece = 1 + fuzz::TakeByte(input);
  const http1::HeadLimits limits{.bytes_max = 2048, .target_bytes_max = 512, .fields_max = 20};
  http1::RequestHead head;
  const http1::ParseOutcome whole = http1::ParseRequestHead(input, limits, head);
  if (whole.complete()) {
    fuzz::Check(whole.consumed <= input.size() && whole.consumed <= limits.bytes_max);
    const std::string_view text = input.substr(0, whole.consumed);
    fuzz::Check(text.ends_with("\r\n\r\n") || head.headers.empty());
    fuzz::Check(text.find('\0') == std::string_view::npos);
    fuzz::Check(head.headers.size() <= limits.fields_max);
    fuzz::Check(fuzz::Within(head.target, text) && !head.target.empty());
    fuzz::Check(head.body != http1::BodyKind::kUntilClose);
    fuzz::Check((head.body == http1::BodyKind::kLength) == (head.content_length > 0));
    int hosts = 0, lengths = 0, codings = 0;
    for (const http1::HeaderField& field : head.headers) {
      fuzz::Check(http1::IsToken(field.name) && http1::IsFieldValue(field.value));
      fuzz::Check(fuzz::Within(field.name, text) && fuzz::Within(field.value, text));
      fuzz::Check(field.id == http1::IdentifyField(field.name));
      hosts += field.id == http1::FieldId::kHost;
      lengths += field.id == http1::FieldId::kContentLength;
      codings += field.id == http1::FieldId::kTransferEncoding;
    }
    fuzz::Check(hosts <= 1 && lengths + codings <= 1);
    fuzz::Check(head.minor_version == 0 || hosts == 1);
    fuzz::Check((head.body == http1::BodyKind::kChunked) == (codings == 1));
  }
  http1::HeadProgress progress;
  http1::RequestHead again;
  http1::ParseOutcome pieces;
  for (size_t bytes = 0; pieces.need_more(); bytes += piece) {
    const std::string_view so_far = input.substr(0, bytes);
    pieces = http1::ParseRequestHead(so_far, limits, again, &progress);
    if (so_far.size() == input.size()) break;
  }
  fuzz::Check(pieces.complete() == whole.complete() && pieces.consumed == whole.consumed);
  return 0;
}
