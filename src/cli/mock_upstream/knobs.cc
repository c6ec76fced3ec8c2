#include "cli/mock_upstream/knobs.h"

#include <array>
#include <charconv>

namespace weir::mock {
namespace {

constexpr std::string_view kPrefix = "x-mock-";

struct NumberKnob {
  std::string_view name;
  int64_t Knobs::* member;
};
constexpr std::array kNumberKnobs = {
    NumberKnob{"latency-ms", &Knobs::latency_ms},
    NumberKnob{"pace-ms", &Knobs::pace_ms},
    NumberKnob{"events", &Knobs::events},
    NumberKnob{"status", &Knobs::status},
    NumberKnob{"body-bytes", &Knobs::body_bytes},
    NumberKnob{"prompt-tokens", &Knobs::prompt_tokens},
    NumberKnob{"completion-tokens", &Knobs::completion_tokens},
    NumberKnob{"abort-after", &Knobs::abort_after},
    NumberKnob{"hang-after", &Knobs::hang_after},
    NumberKnob{"endless-bytes", &Knobs::endless_bytes},
};

struct FlagKnob {
  std::string_view name;
  bool Knobs::* member;
};
constexpr std::array kFlagKnobs = {
    FlagKnob{"missing-usage", &Knobs::missing_usage},
    FlagKnob{"close", &Knobs::close},
    FlagKnob{"chunked", &Knobs::chunked},
};

bool StartsWithPrefix(std::string_view name) {
  return name.size() > kPrefix.size() &&
         http1::EqualIgnoreCase(name.substr(0, kPrefix.size()), kPrefix);
}

}  // namespace

Result<void> SetKnob(Knobs& knobs, std::string_view name, std::string_view value) {
  for (const NumberKnob& knob : kNumberKnobs) {
    if (!http1::EqualIgnoreCase(knob.name, name)) continue;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < -1 ||
        number > int64_t{1} << 40) {
      return InvalidArgument("x-mock-" + std::string(name) +
                             ": must be a whole number from -1 to 2^40");
    }
    knobs.*knob.member = number;
    return {};
  }
  for (const FlagKnob& knob : kFlagKnobs) {
    if (!http1::EqualIgnoreCase(knob.name, name)) continue;
    knobs.*knob.member = value != "0" && value != "false";
    return {};
  }
  if (http1::EqualIgnoreCase(name, "headers")) {
    knobs.headers = value;
    return {};
  }
  if (http1::EqualIgnoreCase(name, "trailers")) {
    knobs.trailers = value;
    return {};
  }
  return InvalidArgument("x-mock-" + std::string(name) + ": no such knob");
}

Result<Knobs> ReadKnobs(const http1::RequestHead& head, const Knobs& defaults) {
  Knobs knobs = defaults;
  std::string_view query = head.query;
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    if (!StartsWithPrefix(pair)) continue;
    const size_t equals = pair.find('=');
    const std::string_view value = equals == std::string_view::npos ? "1" : pair.substr(equals + 1);
    if (auto set = SetKnob(knobs, pair.substr(0, equals).substr(kPrefix.size()), value); !set) {
      return std::unexpected(set.error());
    }
  }
  for (const http1::HeaderField& field : head.headers) {
    if (!StartsWithPrefix(field.name)) continue;
    if (auto set = SetKnob(knobs, field.name.substr(kPrefix.size()), field.value); !set) {
      return std::unexpected(set.error());
    }
  }
  return knobs;
}

}  // namespace weir::mock
