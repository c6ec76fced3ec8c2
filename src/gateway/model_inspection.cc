#include "gateway/model_inspection.h"

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

// Types whose bytes are never a JSON object.
bool IsBinary(std::string_view type) {
  return BeginsWith(type, "multipart/") || BeginsWith(type, "audio/") ||
         BeginsWith(type, "image/") || BeginsWith(type, "video/");
}

bool LooksLikeObject(std::string_view body) {
  const size_t first = body.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && body[first] == '{';
}

Inspection Refused(int status, std::string message) {
  return {.status = status, .message = std::move(message)};
}

}  // namespace

Task<Inspection> InspectModel(LoopState& state, Client& client, Call& call) {
  call.model_known = true;
  const http1::FixedHeaders& headers = call.head.headers;
  const std::string_view type = MediaType(headers.Value(FieldId::kContentType));
  if (IsBinary(type)) co_return Inspection{};
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
  const RequestBody::Piece piece =
      co_await call.body.ReadWhole(call.view->policy->config().bounds.inspect_bytes);
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
