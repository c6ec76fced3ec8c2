#include "gateway/answer_relay.h"

#include <algorithm>
#include <vector>

#include "gateway/field_copier.h"
#include "gateway/loop_state.h"
#include "net/http_service.h"
#include "wire/http1/hop_by_hop.h"
#include "wire/http1/response_writer.h"

namespace weir::gateway {
namespace {

using http1::BodyKind;
using http1::FieldId;

constexpr size_t kReadBytes = 16 * 1024;
constexpr size_t kCopyBytes =
    8 * 1024;  // Up to here copying a body behind its head is cheaper than a second piece.

bool BeginsWith(std::string_view name, std::string_view prefix) {
  return name.size() >= prefix.size() &&
         http1::EqualIgnoreCase(name.substr(0, prefix.size()), prefix);
}

// Whether a field without an id stays here. Asked for most fields of most answers: one look at the
// first letter first.
bool IsLimitField(std::string_view name) {
  switch (name[0] | 0x20) {
    case 'x':
      return BeginsWith(name, "x-ratelimit-");
    case 'r':
      return BeginsWith(name, "ratelimit");
    case 'a':
      return BeginsWith(name, "anthropic-ratelimit-");
    default:
      return false;
  }
}

bool IsDropped(const Call& call, const http1::HeaderField& field) {
  switch (field.id) {
    case FieldId::kContentLength:
    case FieldId::kXRequestId:
      return true;
    case FieldId::kRetryAfter:
      return call.answer.status < 300;
    case FieldId::kOther:
      return IsLimitField(field.name) ||
             (call.answer.status < 300 && http1::EqualIgnoreCase(field.name, "retry-after-ms")) ||
             ((field.name[0] | 0x20) == 'a' && call.view->cors.Replaces(field.name));
    default:
      return false;
  }
}

// How the body goes to the client.
enum class Framing : uint8_t { kNone, kLength, kChunked, kUntilClose };

Framing FramingOf(const Call& call) {
  switch (call.answer.body) {
    case BodyKind::kNone:
      return Framing::kNone;
    case BodyKind::kLength:
      return Framing::kLength;
    default:
      return call.head.minor_version >= 1 ? Framing::kChunked : Framing::kUntilClose;
  }
}

void AppendFields(const Call& call, wire::Buffer& out) {
  const http1::ResponseHead& answer = call.answer;
  const http1::HopByHop hop(answer.headers);
  FieldCopier copier(out);
  bool dated = false;
  for (const http1::HeaderField& field : answer.headers) {
    dated = dated || field.id == FieldId::kDate;
    if (IsDropped(call, field) || hop.Stops(field)) {
      copier.Skip(field);
    } else {
      copier.Keep(field);
    }
  }
  copier.Finish();
  if (!dated) http1::AppendField(out, "Date", net::HttpDateOf(call.wall_ns));
  http1::AppendField(out, "x-request-id", call.request_id);
  if (const http1::HeaderField* theirs = answer.headers.Find(FieldId::kXRequestId);
      theirs != nullptr && theirs->value != call.request_id) {
    http1::AppendField(out, "x-upstream-request-id", theirs->value);
  }
  call.view->cors.AppendFields(call.head.headers.Value(FieldId::kOrigin), out);
  out.Append(call.limit_fields.View());
}

void AppendHead(const Call& call, Framing framing, wire::Buffer& out) {
  const http1::ResponseHead& answer = call.answer;
  http1::ResponseWriter writer(out);
  out.Reserve(1024);
  writer.Begin(answer.status, answer.reason);
  AppendFields(call, out);
  writer.Connection(call.keep_alive, call.head.minor_version);
  switch (framing) {
    case Framing::kLength:
      writer.EndHeadOnly(answer.content_length);
      return;
    case Framing::kChunked:
      writer.EndChunked();
      return;
    case Framing::kUntilClose:
      writer.End();
      return;
    case Framing::kNone:
      // A length of 0, or the length that a HEAD or a 304 speaks of; never on 204 (RFC 9110
      // section 8.6).
      if (answer.has_content_length && answer.status != 204) {
        writer.EndHeadOnly(answer.content_length);
      } else {
        writer.End();
      }
  }
}

// The end of a chunked body, with the trailers that pass.
void AppendEnd(Call& call) {
  std::vector<http1::HeaderField> trailers = call.answer_body.trailers();
  std::erase_if(trailers, [](const http1::HeaderField& field) { return IsLimitField(field.name); });
  http1::ChunkedWriter::AppendEnd(call.out, trailers);
}

struct Pump {
  bool done = false;
  bool broken = false;
  std::string_view direct;  // Payload that is written from where it lies, behind call.out.
};

// Turns what the upstream sent into what the client gets. One read's worth at most.
Pump PumpBody(Call& call, Framing framing) {
  Pump pump;
  if (framing == Framing::kNone) {
    pump.done = true;
    return pump;
  }
  std::string_view input = call.upstream_in.View();
  size_t consumed = 0;
  for (;;) {
    const http1::BodyReader::Step step = call.answer_body.Feed(input);
    input.remove_prefix(step.consumed);
    consumed += step.consumed;
    if (step.state == http1::BodyReader::State::kPayload) {
      if (framing == Framing::kChunked) {
        http1::ChunkedWriter::AppendChunk(call.out, step.payload);
      } else if (call.answer.body == BodyKind::kChunked ||
                 call.out.size() + step.payload.size() <= kCopyBytes) {
        call.out.Append(step.payload);
      } else {
        pump.direct = step.payload;
      }
      continue;
    }
    pump.done = step.state == http1::BodyReader::State::kDone;
    pump.broken = step.state == http1::BodyReader::State::kError;
    break;
  }
  call.upstream_in.Consume(consumed);  // `direct` stays valid until the next read.
  if (pump.done && framing == Framing::kChunked) {
    AppendEnd(call);
  }
  return pump;
}

void CountStream(LoopState& state, Call& call) {
  if (call.streaming ||
      !BeginsWith(call.answer.headers.Value(FieldId::kContentType), "text/event-stream"))
    return;
  call.streaming = true;
  state.metrics().OnStream(state.shard(), 1);
}

}  // namespace

Task<RelayEnd> RelayAnswer(LoopState& state, Client& client, Call& call, net::Stream& upstream,
                           size_t head_bytes) {
  const Framing framing = FramingOf(call);
  if (framing == Framing::kUntilClose) call.keep_alive = false;
  call.status = call.answer.status;
  call.out.Clear();
  AppendHead(call, framing, call.out);
  if (call.answer.body != BodyKind::kNone && call.answer.body != BodyKind::kLength)
    CountStream(state, call);
  call.answer_body.Start(call.answer.body, call.answer.content_length);
  call.upstream_in.Consume(head_bytes);  // The views in call.answer end here.

  for (;;) {
    Pump pump = PumpBody(call, framing);
    if (!call.out.empty() || !pump.direct.empty()) {
      call.answer_begun = true;
      const net::IoResult sent = co_await client.stream.Write(call.out.View(), pump.direct);
      if (!sent.ok()) co_return RelayEnd::kClientGone;
      call.out.Clear();
    }
    if (pump.done) co_return RelayEnd::kWhole;
    if (pump.broken) co_return RelayEnd::kCutShort;

    const int64_t wait_ns = call.view->timeouts.between_bytes_ns;
    upstream.SetReadDeadline(std::min(
        call.deadline_ns, wait_ns > 0 ? state.loop().now_ns() + wait_ns : net::kNoDeadline));
    char* const room = call.upstream_in.Prepare(kReadBytes);
    const net::IoResult got = co_await upstream.Read({room, kReadBytes});
    if (got.ok()) {
      call.upstream_in.Commit(got.bytes);
      continue;
    }
    if (call.client_gone) co_return RelayEnd::kClientGone;
    if (got.status != net::IoStatus::kEnd ||
        call.answer_body.FinishInput().state != http1::BodyReader::State::kDone) {
      co_return RelayEnd::kCutShort;
    }
    if (framing != Framing::kChunked) co_return RelayEnd::kWhole;
    AppendEnd(call);
    const net::IoResult sent = co_await client.stream.Write(call.out.View());
    co_return sent.ok() ? RelayEnd::kWhole : RelayEnd::kClientGone;
  }
}

void AppendInterimHead(const Call& call, wire::Buffer& out) {
  http1::ResponseWriter writer(out);
  writer.Begin(call.answer.status, call.answer.reason);
  const http1::HopByHop hop(call.answer.headers);
  FieldCopier copier(out);
  for (const http1::HeaderField& field : call.answer.headers) {
    const bool stays = hop.Stops(field) || field.id == FieldId::kContentLength ||
                       (field.id == FieldId::kOther && IsLimitField(field.name));
    stays ? copier.Skip(field) : copier.Keep(field);
  }
  copier.Finish();
  writer.End();
}

void AppendSwitchingHead(const Call& call, wire::Buffer& out) {
  http1::ResponseWriter writer(out);
  writer.Begin(101, call.answer.reason);
  AppendFields(call, out);
  out.Append("Connection: Upgrade\r\n");
  http1::AppendField(out, "Upgrade", call.answer.headers.Value(FieldId::kUpgrade));
  writer.End();
}

}  // namespace weir::gateway
