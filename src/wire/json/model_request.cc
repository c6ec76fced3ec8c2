#include "wire/json/model_request.h"

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <cmath>
#include <vector>

namespace weir::json {
namespace {

enum class Name : uint8_t {
  kOther,
  kModel,
  kMaxTokens,
  kMaxCompletionTokens,
  kMaxOutputTokens,
  kN,
  kStream,
  kStreamOptions,
};

struct KnownName {
  std::string_view text;
  Name name;
};
constexpr std::array<KnownName, 7> kKnownNames{{
    {"model", Name::kModel},
    {"max_tokens", Name::kMaxTokens},
    {"max_completion_tokens", Name::kMaxCompletionTokens},
    {"max_output_tokens", Name::kMaxOutputTokens},
    {"n", Name::kN},
    {"stream", Name::kStream},
    {"stream_options", Name::kStreamOptions},
}};
constexpr std::string_view kIncludeUsage = "include_usage";

constexpr size_t kNameBytesMax = 256;  // Of a top-level name; longer ones are refused.
constexpr int64_t kIntegerMax = int64_t{1} << 53;

// The name as readers that ignore case see it: ASCII letters, and the two characters that fold to
// ASCII ones (U+017F to s, U+212A to k), lowered.
std::string Folded(std::string_view name) {
  std::string folded;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with("\xC5\xBF")) {
      folded.push_back('s');
      i += 1;
    } else if (name.substr(i).starts_with("\xE2\x84\xAA")) {
      folded.push_back('k');
      i += 2;
    } else {
      const char c = name[i];
      folded.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c);
    }
  }
  return folded;
}

uint64_t Fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// Finds a backslash in a top-level name. The parser hands names over unescaped, so it cannot tell.
// It follows strings and nesting only: on anything that is no JSON, the parser says so itself.
class EscapeWatcher {
 public:
  // False when the piece holds one.
  bool Take(std::string_view piece) {
    size_t at = 0;
    while (at < piece.size()) {
      if (in_string_) {
        if (!TakeString(piece, at)) return false;
        continue;
      }
      switch (piece[at++]) {
        case '"':
          in_string_ = true;
          in_name_ = depth_ == 1 && name_next_;
          name_next_ = false;
          break;
        case '{':
          name_next_ = ++depth_ == 1;
          break;
        case '[':
          ++depth_;
          break;
        case '}':
        case ']':
          --depth_;
          break;
        case ',':
          name_next_ = depth_ == 1;
          break;
        default:
          break;
      }
    }
    return true;
  }

 private:
  // Moves past what the piece holds of the string; false at a backslash in a name.
  bool TakeString(std::string_view piece, size_t& at) {
    if (after_backslash_) {
      after_backslash_ = false;
      ++at;
    }
    size_t quote = 0;
    while (at < piece.size()) {
      if (quote <= at) quote = std::min(piece.find('"', at), piece.size());
      const size_t backslash = piece.substr(0, quote).find('\\', at);
      if (backslash == std::string_view::npos) {
        in_string_ = quote == piece.size();
        at = std::min(quote + 1, piece.size());
        return true;
      }
      if (in_name_) return false;
      at = backslash + 2;
    }
    after_backslash_ = at > piece.size();
    at = piece.size();
    return true;
  }

  int64_t depth_ = 0;
  bool in_string_ = false;
  bool in_name_ = false;
  bool name_next_ = false;
  bool after_backslash_ = false;
};

// What Boost.JSON's parser calls for each token. Depth 1 is the body's object, depth 2 with
// in_stream_options the object of that name.
struct Handler {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  using Ec = boost::json::error_code;
  using Text = boost::json::string_view;

  ModelRequestLimits limits;
  ModelRequestFields fields;
  std::string error;
  size_t depth = 0;
  Name current = Name::kOther;    // The top-level name whose value is being read.
  bool current_is_usage = false;  // stream_options.include_usage
  bool in_stream_options = false;
  bool seen_usage = false;
  std::string key;
  std::string text;
  std::vector<uint64_t> seen;  // Hashes of the top-level names.

  bool Fail(Ec& ec, std::string message) {
    error = std::move(message);
    ec = boost::json::error::syntax;  // Any error stops the parser; ours is reported instead.
    return false;
  }
  bool AtTop() const { return depth == 1; }
  bool AtUsage() const { return depth == 2 && in_stream_options && current_is_usage; }
  bool ReadsKeys() const { return depth == 1 || (depth == 2 && in_stream_options); }
  std::string_view CurrentText() const {
    for (const KnownName& known : kKnownNames) {
      if (known.name == current) return known.text;
    }
    return "";
  }
  bool MustBe(Ec& ec, std::string_view what) {
    std::string message(AtUsage() ? std::string_view("stream_options.include_usage")
                                  : CurrentText());
    message.append(": must be ").append(what);
    return Fail(ec, std::move(message));
  }
  // A value of the wrong type for a name that is read, if it is one.
  bool WrongType(Ec& ec) {
    if (depth == 0) return Fail(ec, "the body must be a JSON object");
    if (AtUsage()) return MustBe(ec, "true or false");
    if (!AtTop()) return true;
    switch (current) {
      case Name::kOther:
        return true;
      case Name::kModel:
        return MustBe(ec, "a string");
      case Name::kStream:
        return MustBe(ec, "true or false");
      case Name::kStreamOptions:
        return MustBe(ec, "an object");
      default:
        return MustBe(ec, "a whole number of at least 0");
    }
  }

  bool on_document_begin(Ec&) { return true; }
  bool on_document_end(Ec&) { return true; }
  bool on_object_begin(Ec& ec) {
    if (depth == 1 && current == Name::kStreamOptions) {
      in_stream_options = true;
      current_is_usage = false;
    } else if (depth > 0 && !WrongType(ec)) {
      return false;
    }
    ++depth;
    return true;
  }
  bool on_object_end(std::size_t, Ec&) {
    --depth;
    if (depth == 1) in_stream_options = false;
    return true;
  }
  bool on_array_begin(Ec& ec) {
    if (!WrongType(ec)) return false;
    ++depth;
    return true;
  }
  bool on_array_end(std::size_t, Ec&) {
    --depth;
    return true;
  }

  bool on_key_part(Text piece, std::size_t, Ec& ec) {
    if (!ReadsKeys()) return true;
    if (key.size() + piece.size() > kNameBytesMax) return Fail(ec, "a name that is too long");
    key.append(piece.data(), piece.size());
    return true;
  }
  bool on_key(Text piece, std::size_t n, Ec& ec) {
    if (!ReadsKeys()) return true;
    if (!on_key_part(piece, n, ec)) return false;
    const bool taken = depth == 1 ? TakeTopName(ec) : TakeOptionName(ec);
    key.clear();
    return taken;
  }
  bool TakeTopName(Ec& ec) {
    const uint64_t hash = Fnv1a(key);
    if (std::find(seen.begin(), seen.end(), hash) != seen.end()) {
      return Fail(ec, "a top-level name comes twice");
    }
    if (seen.size() == limits.names_max) return Fail(ec, "too many top-level names");
    seen.push_back(hash);
    current = Name::kOther;
    const std::string folded = Folded(key);
    for (const KnownName& known : kKnownNames) {
      if (known.text != folded) continue;
      if (known.text != key) return Fail(ec, std::string(known.text) + ": written in another case");
      current = known.name;
    }
    return true;
  }
  bool TakeOptionName(Ec& ec) {
    current_is_usage = false;
    if (Folded(key) != kIncludeUsage) return true;
    if (key != kIncludeUsage) {
      return Fail(ec, "stream_options.include_usage: written in another case");
    }
    if (seen_usage) return Fail(ec, "stream_options.include_usage: comes twice");
    seen_usage = current_is_usage = true;
    return true;
  }

  bool on_string_part(Text piece, std::size_t, Ec& ec) {
    if (AtTop() && current == Name::kModel) {
      if (text.size() + piece.size() > limits.model_bytes_max) {
        return Fail(ec, "model: is too long");
      }
      text.append(piece.data(), piece.size());
      return true;
    }
    return WrongType(ec);
  }
  bool on_string(Text piece, std::size_t n, Ec& ec) {
    if (!on_string_part(piece, n, ec)) return false;
    if (AtTop() && current == Name::kModel) {
      fields.model = std::move(text);
      text.clear();
    }
    return true;
  }

  bool TakeInteger(int64_t value, Ec& ec) {
    if (!AtTop()) return WrongType(ec);
    std::optional<int64_t>* to = nullptr;
    switch (current) {
      case Name::kMaxTokens:
        to = &fields.max_tokens;
        break;
      case Name::kMaxCompletionTokens:
        to = &fields.max_completion_tokens;
        break;
      case Name::kMaxOutputTokens:
        to = &fields.max_output_tokens;
        break;
      case Name::kN:
        to = &fields.n;
        break;
      default:
        return WrongType(ec);
    }
    if (value < 0 || value > kIntegerMax) return WrongType(ec);
    *to = value;
    return true;
  }
  bool on_number_part(Text, Ec&) { return true; }
  bool on_int64(int64_t value, Text, Ec& ec) { return TakeInteger(value, ec); }
  bool on_uint64(uint64_t, Text, Ec& ec) { return WrongType(ec); }  // Beyond 2^63.
  bool on_double(double value, Text, Ec& ec) {
    // 100.0 is whole, and exact as every double to 2^53 is.
    if (value >= 0 && value <= static_cast<double>(kIntegerMax) && std::floor(value) == value) {
      return TakeInteger(static_cast<int64_t>(value), ec);
    }
    return WrongType(ec);
  }
  bool on_bool(bool value, Ec& ec) {
    if (AtTop() && current == Name::kStream) {
      fields.stream = value;
      return true;
    }
    if (AtUsage()) {
      fields.include_usage = value;
      return true;
    }
    return WrongType(ec);
  }
  bool on_null(Ec& ec) {
    if (depth == 0) return WrongType(ec);
    return true;  // As if it were absent.
  }
  bool on_comment_part(Text, Ec&) { return true; }
  bool on_comment(Text, Ec&) { return true; }

  void Reset() {
    fields = ModelRequestFields();
    error.clear();
    depth = 0;
    current = Name::kOther;
    current_is_usage = in_stream_options = seen_usage = false;
    key.clear();
    text.clear();
    seen.clear();
  }
};

boost::json::parse_options Options(const ModelRequestLimits& limits) {
  boost::json::parse_options options;
  options.max_depth = limits.depth_max;
  return options;
}

}  // namespace

struct ModelRequestReader::State {
  explicit State(const ModelRequestLimits& limits) : parser(Options(limits)) {
    parser.handler().limits = limits;
  }

  bool Write(bool more, std::string_view piece) {
    Handler& handler = parser.handler();
    if (!handler.error.empty()) return false;
    if (!watcher.Take(piece)) {
      handler.error = "a top-level name is written with escapes";
      return false;
    }
    boost::json::error_code ec;
    const size_t used = parser.write_some(more, piece.data(), piece.size(), ec);
    if (!ec && used == piece.size()) {
      bytes += used;
      return true;
    }
    if (handler.error.empty()) {
      if (!ec) {
        handler.error = "text after the JSON document";
      } else if (ec == boost::json::error::incomplete) {
        handler.error = "JSON that is cut short";
      } else if (ec == boost::json::error::too_deep) {
        handler.error = "JSON that is nested too deep";
      } else {
        handler.error = "not valid JSON at byte " + std::to_string(bytes + used);
      }
    }
    return false;
  }

  boost::json::basic_parser<Handler> parser;
  EscapeWatcher watcher;
  size_t bytes = 0;  // Of the pieces before this one.
};

ModelRequestReader::ModelRequestReader(const ModelRequestLimits& limits)
    : state_(std::make_unique<State>(limits)) {}
ModelRequestReader::~ModelRequestReader() = default;
ModelRequestReader::ModelRequestReader(ModelRequestReader&&) noexcept = default;
ModelRequestReader& ModelRequestReader::operator=(ModelRequestReader&&) noexcept = default;

bool ModelRequestReader::Feed(std::string_view piece) {
  return piece.empty() ? error().empty() : state_->Write(true, piece);
}

bool ModelRequestReader::Finish() {
  if (!state_->Write(false, std::string_view("", 0))) return false;
  if (state_->parser.done()) return true;
  state_->parser.handler().error = "JSON that is cut short";
  return false;
}

void ModelRequestReader::Reset() {
  state_->parser.reset();
  state_->parser.handler().Reset();
  state_->watcher = EscapeWatcher();
  state_->bytes = 0;
}

const ModelRequestFields& ModelRequestReader::fields() const {
  return state_->parser.handler().fields;
}

const std::string& ModelRequestReader::error() const { return state_->parser.handler().error; }

}  // namespace weir::json
