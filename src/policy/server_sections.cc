// `timeouts`, `bounds`, `answers` and `cors`.
#include <algorithm>

#include "policy/sections.h"

namespace weir::policy {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

constexpr nanoseconds kLongestTimeout = hours(24 * 7);

void ReadHeaderSets(YamlReader& reader, const YamlNode& node, AnswersConfig& answers) {
  static constexpr std::pair<std::string_view, bool AnswersConfig::*> kSets[] = {
      {"x-ratelimit", &AnswersConfig::x_ratelimit},
      {"ratelimit", &AnswersConfig::ratelimit},
      {"retry-after", &AnswersConfig::retry_after},
      {"openai", &AnswersConfig::openai},
  };
  const auto items = reader.List(node, "answers.headers");
  if (!items) return;
  for (const auto& [name, set] : kSets) answers.*set = false;
  for (const YamlNode* item : *items) {
    const auto set = reader.Choice<bool AnswersConfig::*>(*item, "answers.headers", kSets);
    if (set) answers.*(*set) = true;
  }
}

// An origin as a browser sends it (RFC 6454): scheme, host and port, nothing behind.
bool IsOrigin(std::string_view text) {
  for (std::string_view scheme : {"https://", "http://"}) {
    if (!text.starts_with(scheme)) continue;
    const std::string_view rest = text.substr(scheme.size());
    return !rest.empty() && rest.find_first_of("/?#* \t@") == std::string_view::npos;
  }
  return false;
}

}  // namespace

void ReadTimeouts(YamlReader& reader, const YamlNode& node, TimeoutsConfig& timeouts) {
  const MapReader map(
      reader, node, "timeouts",
      {"header", "idle", "connect", "first_byte", "write", "total", "drain_delay", "drain"});
  static constexpr std::pair<std::string_view, nanoseconds TimeoutsConfig::*> kTimeouts[] = {
      {"header", &TimeoutsConfig::header},
      {"idle", &TimeoutsConfig::idle},
      {"connect", &TimeoutsConfig::connect},
      {"first_byte", &TimeoutsConfig::first_byte},
      {"write", &TimeoutsConfig::write},
      {"total", &TimeoutsConfig::total},
      {"drain_delay", &TimeoutsConfig::drain_delay},
      {"drain", &TimeoutsConfig::drain}};
  for (const auto& [name, timeout] : kTimeouts) {
    const YamlNode* value = map.Find(name);
    if (value == nullptr) continue;
    const auto read =
        reader.Duration(*value, "timeouts." + std::string(name), nanoseconds(0), kLongestTimeout);
    if (read) timeouts.*timeout = *read;
  }
}

void ReadBounds(YamlReader& reader, const YamlNode& node, BoundsConfig& bounds) {
  const MapReader map(reader, node, "bounds", {"header", "body", "inspect", "connections"});
  if (const YamlNode* value = map.Find("header")) {
    bounds.header_bytes =
        reader.Size(*value, "bounds.header", 1 << 10, 1 << 20).value_or(bounds.header_bytes);
  }
  if (const YamlNode* value = map.Find("body")) {
    bounds.body_bytes =
        reader.Size(*value, "bounds.body", 0, int64_t{1} << 40).value_or(bounds.body_bytes);
  }
  if (const YamlNode* value = map.Find("inspect")) {
    bounds.inspect_bytes =
        reader.Size(*value, "bounds.inspect", 0, 64 << 20).value_or(bounds.inspect_bytes);
  }
  if (const YamlNode* value = map.Find("connections")) {
    bounds.connections =
        reader.Integer(*value, "bounds.connections", 1, 1'000'000).value_or(bounds.connections);
  }
}

void ReadAnswers(YamlReader& reader, const YamlNode& node, AnswersConfig& answers) {
  static constexpr std::pair<std::string_view, bool> kResets[] = {{"unix", true},
                                                                  {"seconds", false}};
  static constexpr std::pair<std::string_view, ErrorBody> kBodies[] = {
      {"auto", ErrorBody::kAuto},
      {"openai", ErrorBody::kOpenAi},
      {"anthropic", ErrorBody::kAnthropic},
      {"problem", ErrorBody::kProblem}};
  const MapReader map(reader, node, "answers",
                      {"headers", "x_ratelimit_reset", "error_body", "retry_jitter"});
  if (const YamlNode* value = map.Find("headers")) ReadHeaderSets(reader, *value, answers);
  if (const YamlNode* value = map.Find("x_ratelimit_reset")) {
    answers.x_ratelimit_reset_unix =
        reader.Choice<bool>(*value, "answers.x_ratelimit_reset", kResets).value_or(true);
  }
  if (const YamlNode* value = map.Find("error_body")) {
    answers.error_body =
        reader.Choice<ErrorBody>(*value, "answers.error_body", kBodies).value_or(ErrorBody::kAuto);
  }
  if (const YamlNode* value = map.Find("retry_jitter")) {
    answers.retry_jitter = reader.Duration(*value, "answers.retry_jitter", nanoseconds(0), hours(1))
                               .value_or(answers.retry_jitter);
  }
}

void ReadCors(YamlReader& reader, const YamlNode& node, CorsConfig& cors) {
  const MapReader map(reader, node, "cors", {"origins"});
  const YamlNode* origins = map.Find("origins");
  if (origins == nullptr) return;
  const auto items = reader.List(*origins, "cors.origins");
  if (!items) return;
  for (const YamlNode* item : *items) {
    const auto text = reader.Text(*item, "cors.origins");
    if (!text) continue;
    if (*text != "*" && !IsOrigin(*text)) {
      reader.Fail(item->mark,
                  "cors.origins: `" + *text +
                      "` is no origin; write it like `https://app.example.com`, without "
                      "a path, or `*` for all");
    } else if (*text == "*" && items->size() > 1) {
      reader.Fail(item->mark, "cors.origins: `*` stands alone, since it holds all others");
    } else {
      cors.origins.push_back(*text);
    }
  }
}

}  // namespace weir::policy
