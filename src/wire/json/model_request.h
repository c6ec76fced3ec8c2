// Reads what Weir needs from the JSON body of a call to an AI API while the body streams past: the
// model, the output caps, n, stream. Strict, so that Weir and the upstream cannot read different
// values from the same bytes.
//
//   json::ModelRequestReader reader;
//   reader.Feed(piece);                             // as often as there are pieces
//   if (!reader.Finish()) return BadRequest(reader.error());
//   Use(reader.fields().model);
//
// The whole body is validated as JSON (RFC 8259, UTF-8). Also refused: a body that is no object; a
// top-level name that comes twice, is written with escapes, or differs from one that is read here
// only in case; text after the document; a wrong type for a field that is read here (null counts as
// absent). Thread safety: none; one owner at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::json {

struct ModelRequestFields {
  std::optional<std::string> model;
  std::optional<int64_t> max_tokens;  // These four: 0 to 2^53.
  std::optional<int64_t> max_completion_tokens;
  std::optional<int64_t> max_output_tokens;
  std::optional<int64_t> n;
  std::optional<bool> stream;
  std::optional<bool> include_usage;  // stream_options.include_usage
};

struct ModelRequestLimits {
  size_t depth_max = 64;          // Nested arrays and objects.
  size_t names_max = 256;         // Top-level names.
  size_t model_bytes_max = 1024;  // Of the model's name.
};

class ModelRequestReader {
 public:
  explicit ModelRequestReader(const ModelRequestLimits& limits = {});
  ~ModelRequestReader();
  ModelRequestReader(ModelRequestReader&&) noexcept;
  ModelRequestReader& operator=(ModelRequestReader&&) noexcept;

  // Takes the next piece of the body; false once the body is known to be wrong (see error()).
  bool Feed(std::string_view piece);
  // The body ended. False when it is wrong or cut short.
  bool Finish();
  // Ready for another body; keeps its memory.
  void Reset();

  // Whole only after Finish said true.
  const ModelRequestFields& fields() const;
  // "model: must be a string", "not valid JSON at byte 17"; empty while all is well.
  const std::string& error() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::json
