#include "gateway/model_inspection.h"

#include <algorithm>

#include "gateway/loop_state.h"

namespace weir::gateway {
namespace {

using http1::FieldId;

std::string_view MediaType(std::string_view content_type) {
  content_type = content_type.substr(0, content_type.find(';'));
  while (!content_type.empty() && (content_type.back() == ' ' || content_type.back() == '\t')) {
    content_type.remove_suffix(1);
  }
  return content_type;
}

bool BeginsWith(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         http1::EqualIgnoreCase(text.substr(0, prefix.size()), prefix);
}

bool EndsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         http1::EqualIgnoreCase(text.substr(text.size() - suffix.size()), suffix);
}

bool IsJson(std::string_view type) { return EndsWith(type, "/json") || EndsWith(type, "+json"); }

// Types whose bytes are no JSON object, and may be many: of these only the beginning is read, since
// some upstreams read JSON whatever the type says.
bool IsBinary(std::string_view type) {
  return BeginsWith(type, "multipart/") || BeginsWith(type, "audio/") ||
         BeginsWith(type, "image/") || BeginsWith(type, "video/");
}

// What may stand before an object's brace: blanks, and byte order marks and zeros of the encodings
// that some upstreams guess. These are no JSON to us, so the body is refused in the end.
constexpr std::string_view kBeforeBrace("\0 \t\r\n\xef\xbb\xbf\xfe\xff", 10);

bool LooksLikeObject(std::string_view body) {
  const size_t first = body.find_first_not_of(kBeforeBrace);
  return first != std::string_view::npos && body[first] == '{';
}

Inspection Refused(int status, std::string message) {
  return {.status = status, .message = std::move(message)};
}

}  // namespace

Task<Inspection> InspectModel(LoopState& state, Client& client, Call& call) {
  call.model_known = true;
  const http1::FixedHeaders& headers = call.head.headers;
  if (std::ranges::count(headers, FieldId::kContentType, &http1::HeaderField::id) > 1)
    co_return Refused(400, "the content type is given more than once");
  const std::string_view type = MediaType(headers.Value(FieldId::kContentType));
  if (const std::string_view coding = headers.Value(FieldId::kContentEncoding);
      !coding.empty() && !http1::EqualIgnoreCase(coding, "identity")) {
    co_return Refused(415, "the body must not be compressed: the model is read from it");
  }
  if (!call.body.whole() && call.body.awaits_continue()) {
    // The decision needs the body, so here the client is told to go on before it.
    call.body.MarkContinued();
    const net::IoResult told = co_await client.stream.Write("HTTP/1.1 100 Continue\r\n\r\n");
    if (!told.ok()) co_return Inspection{.client_gone = true};
  }
  const int64_t inspect_bytes = call.view->policy->config().bounds.inspect_bytes;
  RequestBody::Piece piece;
  if (IsBinary(type)) piece = co_await call.body.ReadBeginning(kBeforeBrace, inspect_bytes);
  if (piece.state == RequestBody::State::kDone) {
    if (IsBinary(type) && !LooksLikeObject(call.body.beginning())) co_return Inspection{};
    piece = co_await call.body.ReadWhole(inspect_bytes);
  }
  switch (piece.state) {
    case RequestBody::State::kGone:
      co_return Inspection{.client_gone = true};
    case RequestBody::State::kTimedOut:
      co_return Refused(408, "the body did not arrive in time");
    case RequestBody::State::kRefused:
      co_return Refused(piece.status, piece.reason);
    default:
      break;
  }
  if (!IsJson(type) && !LooksLikeObject(call.body.payload())) co_return Inspection{};
  json::ModelRequestReader& reader = state.model_reader();
  reader.Reset();
  const bool valid = reader.Feed(call.body.payload()) && reader.Finish();
  if (!valid) co_return Refused(400, reader.error());
  if (reader.fields().model) call.model.assign(*reader.fields().model);
  co_return Inspection{};
}

}  // namespace weir::gateway
