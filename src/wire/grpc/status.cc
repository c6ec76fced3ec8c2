#include "wire/grpc/status.h"

#include <array>

namespace weir::grpc {

std::string_view StatusText(Status status) {
  static constexpr std::array<std::string_view, 17> kTexts = {
      "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"};
  return kTexts[static_cast<size_t>(status)];
}

Status StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return Status::kInvalidArgument;
    case ErrorCode::kNotFound:
      return Status::kNotFound;
    case ErrorCode::kFailedPrecondition:
      return Status::kFailedPrecondition;
    case ErrorCode::kResourceExhausted:
      return Status::kResourceExhausted;
    case ErrorCode::kDeadlineExceeded:
      return Status::kDeadlineExceeded;
    case ErrorCode::kUnavailable:
      return Status::kUnavailable;
    default:
      return Status::kInternal;
  }
}

void AppendEncodedMessage(std::string_view message, wire::Buffer& out) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte <= '~' && c != '%') {
      out.Append(c);
      continue;
    }
    out.Append('%');
    out.Append(kDigits[byte >> 4]);
    out.Append(kDigits[byte & 15]);
  }
}

std::optional<int64_t> ParseTimeout(std::string_view text) {
  constexpr size_t kDigitsMax = 8;
  if (text.size() < 2 || text.size() > kDigitsMax + 1) return std::nullopt;
  int64_t value = 0;
  for (const char c : text.substr(0, text.size() - 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  constexpr int64_t kSecond = 1'000'000'000;
  switch (text.back()) {
    case 'H':
      return value > INT64_MAX / (3600 * kSecond) ? INT64_MAX : value * 3600 * kSecond;
    case 'M':
      return value * 60 * kSecond;
    case 'S':
      return value * kSecond;
    case 'm':
      return value * 1'000'000;
    case 'u':
      return value * 1'000;
    case 'n':
      return value;
    default:
      return std::nullopt;
  }
}

}  // namespace weir::grpc
