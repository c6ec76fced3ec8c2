#include "cli/mock_upstream/answers.h"

#include <array>

#include "wire/json/writer.h"

namespace weir::mock {
namespace {

constexpr std::array<std::string_view, 10> kWords = {
    "Water ", "runs ", "over ", "the ", "weir ", "at ", "a ", "known ", "rate ", "always "};
constexpr std::string_view kFiller =
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

std::string_view Word(int64_t index) { return kWords[static_cast<size_t>(index) % kWords.size()]; }

// What one event carries: a word, or an equal share of body_bytes.
std::string EventText(const Call& call, int64_t index) {
  if (call.knobs.body_bytes <= 0) return std::string(Word(index));
  const int64_t events = call.knobs.events > 0 ? call.knobs.events : 1;
  int64_t bytes = call.knobs.body_bytes / events + (index < call.knobs.body_bytes % events ? 1 : 0);
  std::string text;
  text.reserve(static_cast<size_t>(bytes));
  for (; bytes > 0; bytes -= static_cast<int64_t>(kFiller.size())) {
    text += kFiller.substr(0, static_cast<size_t>(bytes));
  }
  return text;
}

std::string WholeText(const Call& call) {
  std::string text;
  for (int64_t i = 0; i < call.knobs.events; ++i) text += EventText(call, i);
  return text;
}

void OpenAiUsage(json::Writer& json, const Knobs& knobs) {
  json.Key("usage").BeginObject();
  json.Key("prompt_tokens").Int(knobs.prompt_tokens);
  json.Key("completion_tokens").Int(knobs.completion_tokens);
  json.Key("total_tokens").Int(knobs.prompt_tokens + knobs.completion_tokens);
  json.Key("prompt_tokens_details").BeginObject().Key("cached_tokens").Int(0).EndObject();
  json.Key("completion_tokens_details").BeginObject().Key("reasoning_tokens").Int(0).EndObject();
  json.EndObject();
}

void ResponsesUsage(json::Writer& json, const Knobs& knobs) {
  json.Key("usage").BeginObject();
  json.Key("input_tokens").Int(knobs.prompt_tokens);
  json.Key("input_tokens_details").BeginObject().Key("cached_tokens").Int(0).EndObject();
  json.Key("output_tokens").Int(knobs.completion_tokens);
  json.Key("output_tokens_details").BeginObject().Key("reasoning_tokens").Int(0).EndObject();
  json.Key("total_tokens").Int(knobs.prompt_tokens + knobs.completion_tokens);
  json.EndObject();
}

void MessagesUsage(json::Writer& json, int64_t input_tokens, int64_t output_tokens) {
  json.Key("usage").BeginObject();
  json.Key("input_tokens").Int(input_tokens);
  json.Key("output_tokens").Int(output_tokens);
  json.EndObject();
}

void AppendChat(wire::Buffer& out, const Call& call) {
  json::Writer json(out);
  json.BeginObject();
  json.Key("id").String("chatcmpl-mock").Key("object").String("chat.completion");
  json.Key("created").Int(call.created_s).Key("model").String(call.model);
  json.Key("choices").BeginArray().BeginObject();
  json.Key("index").Int(0).Key("message").BeginObject();
  json.Key("role")
      .String("assistant")
      .Key("content")
      .String(WholeText(call))
      .Key("refusal")
      .Null()
      .EndObject();
  json.Key("logprobs").Null().Key("finish_reason").String("stop").EndObject().EndArray();
  if (!call.knobs.missing_usage) OpenAiUsage(json, call.knobs);
  json.EndObject();
}

// The object of the Responses API; whole when `completed`.
void ResponsesObject(json::Writer& json, const Call& call, bool completed) {
  json.BeginObject();
  json.Key("id")
      .String("resp_mock")
      .Key("object")
      .String("response")
      .Key("created_at")
      .Int(call.created_s);
  json.Key("status").String(completed ? "completed" : "in_progress");
  json.Key("error").Null().Key("incomplete_details").Null().Key("instructions").Null();
  json.Key("metadata").BeginObject().EndObject();
  json.Key("model").String(call.model).Key("parallel_tool_calls").Bool(true);
  json.Key("tool_choice").String("auto").Key("tools").BeginArray().EndArray();
  json.Key("temperature").Int(1).Key("top_p").Int(1).Key("output").BeginArray();
  if (completed) {
    json.BeginObject();
    json.Key("type")
        .String("message")
        .Key("id")
        .String("msg_mock")
        .Key("status")
        .String("completed");
    json.Key("role").String("assistant").Key("content").BeginArray().BeginObject();
    json.Key("type").String("output_text").Key("text").String(WholeText(call));
    json.Key("annotations").BeginArray().EndArray().EndObject().EndArray().EndObject();
  }
  json.EndArray();
  if (completed && !call.knobs.missing_usage) ResponsesUsage(json, call.knobs);
  json.EndObject();
}

void AppendMessage(wire::Buffer& out, const Call& call, bool begun_only) {
  json::Writer json(out);
  json.BeginObject();
  json.Key("id").String("msg_mock").Key("type").String("message").Key("role").String("assistant");
  json.Key("model").String(call.model).Key("content").BeginArray();
  if (!begun_only) {
    json.BeginObject().Key("type").String("text").Key("text").String(WholeText(call)).EndObject();
  }
  json.EndArray();
  if (begun_only) {
    json.Key("stop_reason").Null();
  } else {
    json.Key("stop_reason").String("end_turn");
  }
  json.Key("stop_sequence").Null();
  if (!call.knobs.missing_usage) {
    MessagesUsage(json, call.knobs.prompt_tokens, begun_only ? 1 : call.knobs.completion_tokens);
  }
  json.EndObject();
}

// Writes "data: " and the object that `write` fills, and ends the event.
template <typename Write>
void Event(wire::Buffer& out, std::string_view type, int64_t sent_ns, Write&& write) {
  if (!type.empty()) {
    out.Append("event: ");
    out.Append(type);
    out.Append("\n");
  }
  out.Append("data: ");
  json::Writer json(out);
  json.BeginObject();
  if (!type.empty()) json.Key("type").String(type);
  write(json);
  json.Key("sent_ns").Int(sent_ns);
  json.EndObject();
  out.Append("\n\n");
}

void ChatChunk(wire::Buffer& out, const Call& call, int64_t sent_ns, std::string_view delta_name,
               std::string_view delta, std::string_view finish) {
  Event(out, "", sent_ns, [&](json::Writer& json) {
    json.Key("id").String("chatcmpl-mock").Key("object").String("chat.completion.chunk");
    json.Key("created").Int(call.created_s).Key("model").String(call.model);
    json.Key("choices").BeginArray().BeginObject().Key("index").Int(0).Key("delta").BeginObject();
    if (!delta_name.empty()) json.Key(delta_name).String(delta);
    json.EndObject().Key("logprobs").Null().Key("finish_reason");
    if (finish.empty()) {
      json.Null();
    } else {
      json.String(finish);
    }
    json.EndObject().EndArray();
    if (call.include_usage) json.Key("usage").Null();
  });
}

void ChatEnd(wire::Buffer& out, const Call& call, int64_t sent_ns) {
  ChatChunk(out, call, sent_ns, "", "", "stop");
  if (call.include_usage && !call.knobs.missing_usage) {
    Event(out, "", sent_ns, [&](json::Writer& json) {
      json.Key("id").String("chatcmpl-mock").Key("object").String("chat.completion.chunk");
      json.Key("created").Int(call.created_s).Key("model").String(call.model);
      json.Key("choices").BeginArray().EndArray();
      OpenAiUsage(json, call.knobs);
    });
  }
  out.Append("data: [DONE]\n\n");
}

void MessagesEnd(wire::Buffer& out, const Call& call, int64_t sent_ns) {
  Event(out, "content_block_stop", sent_ns, [](json::Writer& json) { json.Key("index").Int(0); });
  Event(out, "message_delta", sent_ns, [&](json::Writer& json) {
    json.Key("delta")
        .BeginObject()
        .Key("stop_reason")
        .String("end_turn")
        .Key("stop_sequence")
        .Null()
        .EndObject();
    json.Key("usage").BeginObject().Key("output_tokens");
    json.Int(call.knobs.missing_usage ? 0 : call.knobs.completion_tokens).EndObject();
  });
  Event(out, "message_stop", sent_ns, [](json::Writer&) {});
}

}  // namespace

void AppendAnswer(wire::Buffer& out, const Call& call) {
  switch (call.api) {
    case Api::kChat:
      return AppendChat(out, call);
    case Api::kMessages:
      return AppendMessage(out, call, /*begun_only=*/false);
    case Api::kResponses: {
      json::Writer json(out);
      return ResponsesObject(json, call, /*completed=*/true);
    }
  }
}

void AppendStreamBegin(wire::Buffer& out, const Call& call, int64_t sent_ns) {
  switch (call.api) {
    case Api::kChat:
      return ChatChunk(out, call, sent_ns, "role", "assistant", "");
    case Api::kResponses:
      return Event(out, "response.created", sent_ns, [&](json::Writer& json) {
        json.Key("sequence_number").Int(0).Key("response");
        wire::Buffer object;
        json::Writer inner(object);
        ResponsesObject(inner, call, /*completed=*/false);
        json.Raw(object.View());
      });
    case Api::kMessages: {
      Event(out, "message_start", sent_ns, [&](json::Writer& json) {
        wire::Buffer object;
        AppendMessage(object, call, /*begun_only=*/true);
        json.Key("message").Raw(object.View());
      });
      return Event(out, "content_block_start", sent_ns, [](json::Writer& json) {
        json.Key("index").Int(0).Key("content_block").BeginObject();
        json.Key("type").String("text").Key("text").String("").EndObject();
      });
    }
  }
}

void AppendStreamEvent(wire::Buffer& out, const Call& call, int64_t index, int64_t sent_ns) {
  const std::string text = EventText(call, index);
  switch (call.api) {
    case Api::kChat:
      return ChatChunk(out, call, sent_ns, "content", text, "");
    case Api::kResponses:
      return Event(out, "response.output_text.delta", sent_ns, [&](json::Writer& json) {
        json.Key("sequence_number").Int(index + 1).Key("item_id").String("msg_mock");
        json.Key("output_index").Int(0).Key("content_index").Int(0).Key("delta").String(text);
        json.Key("logprobs").BeginArray().EndArray();
      });
    case Api::kMessages:
      return Event(out, "content_block_delta", sent_ns, [&](json::Writer& json) {
        json.Key("index").Int(0).Key("delta").BeginObject();
        json.Key("type").String("text_delta").Key("text").String(text).EndObject();
      });
  }
}

void AppendStreamEnd(wire::Buffer& out, const Call& call, int64_t sent_ns) {
  switch (call.api) {
    case Api::kChat:
      return ChatEnd(out, call, sent_ns);
    case Api::kMessages:
      return MessagesEnd(out, call, sent_ns);
    case Api::kResponses:
      return Event(out, "response.completed", sent_ns, [&](json::Writer& json) {
        json.Key("sequence_number").Int(call.knobs.events + 1).Key("response");
        wire::Buffer object;
        json::Writer inner(object);
        ResponsesObject(inner, call, /*completed=*/true);
        json.Raw(object.View());
      });
  }
}

void AppendEmbeddings(wire::Buffer& out, const Call& call) {
  json::Writer json(out);
  json.BeginObject().Key("object").String("list").Key("data").BeginArray().BeginObject();
  json.Key("object").String("embedding").Key("index").Int(0).Key("embedding").BeginArray();
  json.Raw("0.125").Raw("-0.25").Raw("0.5").EndArray().EndObject().EndArray();
  json.Key("model").String(call.model);
  if (!call.knobs.missing_usage) {
    json.Key("usage").BeginObject().Key("prompt_tokens").Int(call.knobs.prompt_tokens);
    json.Key("total_tokens").Int(call.knobs.prompt_tokens).EndObject();
  }
  json.EndObject();
}

void AppendModels(wire::Buffer& out) {
  out.Append(
      R"({"object":"list","data":[{"id":"mock-1","object":"model","created":1700000000,"owned_by":"weir"},)"
      R"({"id":"mock-2","object":"model","created":1700000000,"owned_by":"weir"}]})");
}

void AppendError(wire::Buffer& out, Api api, int64_t status, std::string_view message) {
  json::Writer json(out);
  json.BeginObject();
  if (api == Api::kMessages) json.Key("type").String("error");
  json.Key("error").BeginObject().Key("message").String(message);
  json.Key("type").String(status >= 500 ? "server_error" : "invalid_request_error");
  if (api != Api::kMessages) json.Key("param").Null().Key("code").Null();
  json.EndObject().EndObject();
}

}  // namespace weir::mock
