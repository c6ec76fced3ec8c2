#include "wire/sse/event_scanner.h"

#include <algorithm>

namespace weir::sse {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

EventScanner::State EventScanner::Next(std::string_view& input) {
  while (!too_long_ && !input.empty()) {
    if (skip_lf_) {
      skip_lf_ = false;
      if (input.front() == '\n') {
        input.remove_prefix(1);
        continue;
      }
    }
    const size_t end = std::min(input.find_first_of("\r\n"), input.size());
    if (line_.size() + end > bytes_max_) {
      too_long_ = true;
      break;
    }
    if (end == input.size()) {
      line_.append(input);
      input = {};
      break;
    }
    std::string_view line = input.substr(0, end);
    if (!line_.empty()) {
      line_.append(line);
      line = line_;
    }
    skip_lf_ = input[end] == '\r';
    input.remove_prefix(end + 1);
    const bool event_ended = TakeLine(line);
    line_.clear();
    if (event_ended) return State::kEvent;
  }
  if (too_long_) return State::kTooLong;
  return State::kNeedMore;
}

bool EventScanner::TakeLine(std::string_view line) {
  if (first_line_) {
    first_line_ = false;
    if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  }
  if (line.empty()) {
    const bool whole = has_data_;
    if (whole) {
      event_.type.assign(type_);
      event_.data.assign(data_);
      event_.id.assign(id_);
    }
    type_.clear();
    data_.clear();
    has_data_ = false;
    return whole;
  }
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string_view name = line.substr(0, colon);
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "data") {
    if (data_.size() + value.size() + 1 > bytes_max_) {
      too_long_ = true;
      return false;
    }
    if (has_data_) data_.push_back('\n');
    data_.append(value);
    has_data_ = true;
  } else if (name == "event") {
    type_.assign(value);
  } else if (name == "id" && value.find('\0') == std::string_view::npos) {
    id_.assign(value);
  }
  return false;
}

void EventScanner::Reset() {
  line_.clear();
  data_.clear();
  type_.clear();
  id_.clear();
  has_data_ = skip_lf_ = too_long_ = false;
  first_line_ = true;
}

}  // namespace weir::sse
