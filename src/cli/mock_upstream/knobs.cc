#include "cli/mock_upstream/knobs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/suggest.h"

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

std::vector<std::string_view> Names() {
  std::vector<std::string_view> names = {"headers", "trailers"};
  for (const NumberKnob& knob : kNumberKnobs) names.push_back(knob.name);
  for (const FlagKnob& knob : kFlagKnobs) names.push_back(knob.name);
  return names;
}

bool IsKnob(std::string_view name) {
  return std::ranges::any_of(
      Names(), [name](std::string_view knob) { return http1::EqualIgnoreCase(knob, name); });
}

std::string_view ExampleOf(std::string_view name) {
  const bool text =
      http1::EqualIgnoreCase(name, "headers") || http1::EqualIgnoreCase(name, "trailers");
  return text ? "'x-a: 1'" : "100";
}

std::unexpected<Error> NoSuchKnob(std::string_view name) {
  return InvalidArgument("x-mock-" + std::string(name) + ": no such knob" +
                         base::DidYouMean(name, Names()));
}

bool StartsWithPrefix(std::string_view name) {
  return name.size() > kPrefix.size() &&
         http1::EqualIgnoreCase(name.substr(0, kPrefix.size()), kPrefix);
}

}  // namespace

Result<void> SetKnob(Knobs& knobs, std::string_view name_and_value) {
  const size_t equals = name_and_value.find('=');
  const std::string_view name = name_and_value.substr(0, equals);
  if (equals != std::string_view::npos)
    return SetKnob(knobs, name, name_and_value.substr(equals + 1));
  for (const FlagKnob& knob : kFlagKnobs) {
    if (http1::EqualIgnoreCase(knob.name, name)) return SetKnob(knobs, name, "1");
  }
  if (!IsKnob(name)) return NoSuchKnob(name);
  return InvalidArgument("a value is missing, as in " + std::string(name) + "=" +
                         std::string(ExampleOf(name)));
}

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
  return NoSuchKnob(name);
}

Result<Knobs> ReadKnobs(const http1::RequestHead& head, const Knobs& defaults) {
  Knobs knobs = defaults;
  std::string_view query = head.query;
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    if (!StartsWithPrefix(pair)) continue;
    if (auto set = SetKnob(knobs, pair.substr(kPrefix.size())); !set) {
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
