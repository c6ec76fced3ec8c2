#include "redis/sentinel_session.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "redis/reply_error.h"
#include "wire/resp/command_writer.h"

namespace weir::redis {
namespace {

constexpr std::string_view kSwitchMaster = "+switch-master";
constexpr size_t kSentinelsMax = 32;

std::optional<Address> ReadAddress(std::string_view host, std::string_view port_text) {
  int port = 0;
  const auto [stop, bad] =
      std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (bad != std::errc() || stop != port_text.data() + port_text.size() || port < 1 ||
      port > 65535 || host.empty()) {
    return std::nullopt;
  }
  return Address{std::string(host), port};
}

// A message of Pub/Sub: ["subscribe" | "message", channel, …].
bool IsPubSub(const resp::Value& reply) {
  return reply.IsList() && reply.items.size() >= 3 && reply.items[0].IsString() &&
         (reply.items[0].text == "subscribe" || reply.items[0].text == "message") &&
         reply.items[1].IsString() && reply.items[1].text == kSwitchMaster;
}

}  // namespace

void SentinelSession::Start(wire::Buffer& out) {
  const std::string_view ask[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master_name_};
  const std::string_view others[] = {"SENTINEL", "SENTINELS", master_name_};
  const std::string_view subscribe[] = {"SUBSCRIBE", kSwitchMaster};
  resp::AppendCommand(out, ask);
  resp::AppendCommand(out, others);
  resp::AppendCommand(out, subscribe);
  expected_ = {Expected::kMaster, Expected::kSentinels, Expected::kSubscription};
  // A switch between the first answer and the subscription would go unseen.
  AskAgain(out);
}

bool SentinelSession::AskAgain(wire::Buffer& out) {
  if (protocol_ < 3) return false;
  const std::string_view ask[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master_name_};
  resp::AppendCommand(out, ask);
  expected_.push_back(Expected::kMaster);
  return true;
}

SentinelSession::Event SentinelSession::Fail(ErrorCode code, std::string message) {
  error_ = {code, std::move(message)};
  return Event::kFailed;
}

SentinelSession::Event SentinelSession::OnReply(const resp::Value& reply) {
  if (IsPubSub(reply)) return OnMessage(reply);
  if (reply.type == resp::Type::kPush) return Event::kNone;
  if (expected_.empty()) return Fail(ErrorCode::kUnavailable, "a reply that answers nothing");
  const Expected expected = expected_.front();
  expected_.erase(expected_.begin());
  switch (expected) {
    case Expected::kMaster:
      return OnMaster(reply);
    case Expected::kSentinels:
      OnSentinels(reply);
      return Event::kNone;
    case Expected::kSubscription:  // The subscription itself is a message of Pub/Sub.
      break;
  }
  return Fail(ErrorCode::kUnavailable,
              "the subscription was refused (" + std::string(ErrorWord(reply.text)) + ")");
}

SentinelSession::Event SentinelSession::OnMaster(const resp::Value& reply) {
  if (reply.IsNull()) {
    return Fail(ErrorCode::kNotFound, "the Sentinel knows no master of the name " + master_name_);
  }
  if (reply.IsError()) {
    return Fail(ErrorCode::kUnavailable, "the Sentinel does not say who the master is (" +
                                             std::string(ErrorWord(reply.text)) + ")");
  }
  if (!reply.IsList() || reply.items.size() != 2 || !reply.items[0].IsString() ||
      !reply.items[1].IsString()) {
    return Fail(ErrorCode::kUnavailable, "the Sentinel's answer is malformed");
  }
  const std::optional<Address> master = ReadAddress(reply.items[0].text, reply.items[1].text);
  if (!master) return Fail(ErrorCode::kUnavailable, "the Sentinel's answer is malformed");
  master_ = *master;
  return Event::kMaster;
}

// What cannot be read is left out: these are only further ones to ask.
void SentinelSession::OnSentinels(const resp::Value& reply) {
  if (!reply.IsList()) return;
  for (const resp::Value& one : reply.items) {
    const resp::Value* ip = one.Find("ip");
    const resp::Value* port = one.Find("port");
    if (ip == nullptr || port == nullptr || sentinels_.size() == kSentinelsMax) continue;
    const std::optional<Address> address = ReadAddress(ip->text, port->text);
    if (address && std::ranges::find(sentinels_, *address) == sentinels_.end()) {
      sentinels_.push_back(*address);
    }
  }
}

// "mymaster 10.0.0.1 6379 10.0.0.2 6379": name, old address, new address.
SentinelSession::Event SentinelSession::OnMessage(const resp::Value& message) {
  if (message.items[0].text == "subscribe") {
    subscribed_ = true;
    std::erase(expected_, Expected::kSubscription);
    return Event::kNone;
  }
  std::string_view text = message.items[2].text;
  std::vector<std::string_view> words;
  while (!text.empty() && words.size() < 6) {
    const size_t space = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  if (words.size() != 5 || words[0] != master_name_) return Event::kNone;
  const std::optional<Address> master = ReadAddress(words[3], words[4]);
  if (!master) return Event::kNone;
  master_ = *master;
  return Event::kMaster;
}

}  // namespace weir::redis
