// The bodies that the stand-in upstream gives: OpenAI's chat completions, responses, embeddings and
// models, and Anthropic's messages, whole and as events. Deterministic: the same call gives the
// same text and usage.
//
// Thread safety: pure functions that append to `out`.
//
//   AppendChat(out, call);                                   //
//   {"id":"chatcmpl-mock",...,"usage":{...}} AppendStreamEvent(out, call, index, sent_ns); // data:
//   {...}\n\n
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/mock_upstream/knobs.h"
#include "wire/buffer.h"

namespace weir::mock {

enum class Api : uint8_t { kChat, kResponses, kMessages };

// What one call asks for.
struct Call {
  Api api = Api::kChat;
  std::string model = "mock-1";
  bool stream = false;
  bool include_usage = false;
  int64_t created_s = 0;  // Unix seconds.
  Knobs knobs;
};

// The whole answer of a call without a stream.
void AppendAnswer(wire::Buffer& out, const Call& call);

// A stream is: begin, `knobs.events` times an event, end. Each event carries `sent_ns`
// (CLOCK_MONOTONIC), so that a reader on the same machine sees how long it was on its way.
void AppendStreamBegin(wire::Buffer& out, const Call& call, int64_t sent_ns);
void AppendStreamEvent(wire::Buffer& out, const Call& call, int64_t index, int64_t sent_ns);
void AppendStreamEnd(wire::Buffer& out, const Call& call, int64_t sent_ns);

void AppendEmbeddings(wire::Buffer& out, const Call& call);
void AppendModels(wire::Buffer& out);

// An error in the shape of the API.
void AppendError(wire::Buffer& out, Api api, int64_t status, std::string_view message);

}  // namespace weir::mock
