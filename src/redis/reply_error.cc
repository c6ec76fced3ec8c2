#include "redis/reply_error.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

#include "redis/key_slot.h"

namespace weir::redis {
namespace {

struct Word {
  std::string_view word;
  ErrorMeaning meaning;
};

constexpr std::array kWords = {
    Word{"NOSCRIPT", {ErrorKind::kNoScript, Remedy::kSendText, ErrorCode::kUnavailable, true}},
    Word{"MOVED", {ErrorKind::kMoved, Remedy::kFollow, ErrorCode::kUnavailable, true}},
    Word{"ASK", {ErrorKind::kAsk, Remedy::kFollowOnce, ErrorCode::kUnavailable, true}},
    Word{"TRYAGAIN", {ErrorKind::kTryAgain, Remedy::kWait, ErrorCode::kUnavailable, true}},
    Word{"CLUSTERDOWN", {ErrorKind::kClusterDown, Remedy::kWait, ErrorCode::kUnavailable, true}},
    Word{"CROSSSLOT", {ErrorKind::kCrossSlot, Remedy::kNone, ErrorCode::kInvalidArgument, true}},
    Word{"READONLY", {ErrorKind::kReadOnly, Remedy::kFindMaster, ErrorCode::kUnavailable, true}},
    Word{"MASTERDOWN",
         {ErrorKind::kMasterDown, Remedy::kFindMaster, ErrorCode::kUnavailable, true}},
    Word{"LOADING", {ErrorKind::kLoading, Remedy::kWait, ErrorCode::kUnavailable, true}},
    Word{"BUSY", {ErrorKind::kBusy, Remedy::kWait, ErrorCode::kUnavailable, true}},
    Word{"OOM", {ErrorKind::kOutOfMemory, Remedy::kNone, ErrorCode::kUnavailable, true}},
    Word{"MISCONF", {ErrorKind::kMisconfigured, Remedy::kNone, ErrorCode::kUnavailable, true}},
    Word{"NOREPLICAS", {ErrorKind::kNoReplicas, Remedy::kNone, ErrorCode::kUnavailable, true}},
    Word{"NOAUTH", {ErrorKind::kNoAuth, Remedy::kReconnect, ErrorCode::kPermissionDenied, true}},
    Word{"WRONGPASS",
         {ErrorKind::kWrongPassword, Remedy::kReconnect, ErrorCode::kPermissionDenied, true}},
    Word{"NOPERM", {ErrorKind::kNoPermission, Remedy::kNone, ErrorCode::kPermissionDenied, true}},
    Word{"NOPROTO", {ErrorKind::kNoProtocol, Remedy::kNone, ErrorCode::kInternal, true}},
};

constexpr std::string_view kTooManyClients = "ERR max number of clients reached";

const ErrorMeaning* Find(std::string_view word) {
  const auto found = std::ranges::find(kWords, word, &Word::word);
  return found == kWords.end() ? nullptr : &found->meaning;
}

// Before Redis 7 an error that a script's command met is wrapped: "ERR Error running script (call
// to f_…): @user_script:1: -READONLY You can't write against a read only replica."
const ErrorMeaning* FindWrapped(std::string_view text) {
  const size_t at = text.find(": -");
  if (at == std::string_view::npos || !text.starts_with("ERR Error running script")) return nullptr;
  const std::string_view inner = text.substr(at + 3);
  return Find(inner.substr(0, inner.find(' ')));
}

bool IsWordByte(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

}  // namespace

ErrorMeaning MeaningOf(std::string_view text) {
  const ErrorMeaning* meaning = Find(text.substr(0, text.find(' ')));
  if (meaning == nullptr) meaning = FindWrapped(text);
  if (meaning != nullptr) return *meaning;
  if (text.starts_with(kTooManyClients)) {
    return {ErrorKind::kTooManyClients, Remedy::kReconnect, ErrorCode::kUnavailable, true};
  }
  return {};
}

Error ErrorOf(const ErrorMeaning& meaning, std::string_view text, const Address& from) {
  constexpr size_t kBytesMax = 300;
  std::string message = from.ToString() + ": ";
  for (const char c : text.substr(0, kBytesMax)) {
    message.push_back(c >= ' ' && c != 0x7f ? c : '?');
  }
  if (text.size() > kBytesMax) message += "...";
  return {meaning.code, std::move(message)};
}

std::string_view ErrorWord(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(' '));
  const bool fine = !word.empty() && word.size() <= 24 && std::ranges::all_of(word, IsWordByte);
  return fine ? word : "an error";
}

std::optional<Redirect> ParseRedirect(std::string_view text, const Address& asked) {
  const size_t first = text.find(' ');
  if (first == std::string_view::npos) return std::nullopt;
  const size_t second = text.find(' ', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const std::string_view slot_text = text.substr(first + 1, second - first - 1);
  std::string_view target = text.substr(second + 1);
  target = target.substr(0, target.find(' '));
  const size_t colon = target.rfind(':');  // The last one: IPv6 addresses come without brackets.
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view port_text = target.substr(colon + 1);

  Redirect redirect;
  const auto whole = [](std::string_view digits, auto& number) {
    const auto [stop, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return bad == std::errc() && stop == digits.data() + digits.size() && !digits.empty();
  };
  if (!whole(slot_text, redirect.slot) || redirect.slot >= kSlots) return std::nullopt;
  if (!whole(port_text, redirect.target.port)) return std::nullopt;
  if (redirect.target.port < 1 || redirect.target.port > 65535) return std::nullopt;
  redirect.target.host = target.substr(0, colon);
  if (redirect.target.host.starts_with('[') && redirect.target.host.ends_with(']')) {
    redirect.target.host = redirect.target.host.substr(1, redirect.target.host.size() - 2);
  }
  if (redirect.target.host.empty() || redirect.target.host == "?")
    redirect.target.host = asked.host;
  return redirect;
}

}  // namespace weir::redis
