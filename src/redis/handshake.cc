#include "redis/handshake.h"

#include <string_view>
#include <utility>
#include <vector>

#include "redis/reply_error.h"
#include "wire/resp/command_writer.h"

namespace weir::redis {
namespace {

std::string Said(const resp::Value& reply) { return std::string(ErrorWord(reply.text)); }

}  // namespace

void Handshake::Start(wire::Buffer& out) {
  std::vector<std::string_view> words = {"HELLO", "3"};
  if (has_credentials()) {
    const std::string_view user = options_.credentials.user;
    words.insert(words.end(),
                 {"AUTH", user.empty() ? "default" : user, options_.credentials.password});
  }
  if (!options_.client_name.empty()) {
    words.insert(words.end(), {"SETNAME", options_.client_name});
  }
  resp::AppendCommand(out, words);
}

Handshake::State Handshake::Fail(ErrorCode code, std::string message) {
  step_ = Step::kFailed;
  error_ = {code, std::move(message)};
  return State::kFailed;
}

Handshake::State Handshake::Go(Step step, wire::Buffer& out) {
  step_ = step;
  const auto send = [&](std::initializer_list<std::string_view> words) {
    resp::AppendCommand(out, std::span(words.begin(), words.size()));
    return State::kMore;
  };
  switch (step_) {
    case Step::kAuth:
      if (has_credentials()) {
        const Credentials& credentials = options_.credentials;
        return credentials.user.empty() ? send({"AUTH", credentials.password})
                                        : send({"AUTH", credentials.user, credentials.password});
      }
      step_ = Step::kName;
      [[fallthrough]];
    case Step::kName:
      if (protocol_ == 2 && !options_.client_name.empty()) {  // HELLO has set it otherwise.
        return send({"CLIENT", "SETNAME", options_.client_name});
      }
      step_ = Step::kSelect;
      [[fallthrough]];
    case Step::kSelect:
      if (options_.database != 0) return send({"SELECT", std::to_string(options_.database)});
      step_ = Step::kRole;
      [[fallthrough]];
    case Step::kRole:
      if (options_.require_master) return send({"ROLE"});
      step_ = Step::kReady;
      [[fallthrough]];
    default:
      return State::kReady;
  }
}

Handshake::State Handshake::OnHello(const resp::Value& reply, wire::Buffer& out) {
  if (!reply.IsError()) {
    protocol_ = 3;
    return Go(Step::kSelect, out);
  }
  const ErrorMeaning meaning = MeaningOf(reply.text);
  switch (meaning.kind) {
    case ErrorKind::kWrongPassword:
      return Fail(ErrorCode::kPermissionDenied, "the user or the password is wrong (WRONGPASS)");
    case ErrorKind::kNoAuth:
      if (has_credentials()) return Go(Step::kAuth, out);
      return Fail(ErrorCode::kPermissionDenied,
                  "the server wants a password and none is configured (NOAUTH)");
    case ErrorKind::kLoading:
    case ErrorKind::kMasterDown:
    case ErrorKind::kBusy:
    case ErrorKind::kTooManyClients:
      return Fail(ErrorCode::kUnavailable, "the server is not ready (" + Said(reply) + ")");
    default:  // It does not know HELLO, or not version 3, or not for this user.
      return Go(Step::kAuth, out);
  }
}

Handshake::State Handshake::OnAuth(const resp::Value& reply, wire::Buffer& out) {
  if (!reply.IsError()) return Go(Step::kName, out);
  const ErrorMeaning meaning = MeaningOf(reply.text);
  if (meaning.kind == ErrorKind::kWrongPassword) {
    return Fail(ErrorCode::kPermissionDenied, "the user or the password is wrong (WRONGPASS)");
  }
  if (meaning.code == ErrorCode::kUnavailable) {
    return Fail(ErrorCode::kUnavailable, "the server is not ready (" + Said(reply) + ")");
  }
  return Fail(
      ErrorCode::kPermissionDenied,
      options_.credentials.user.empty()
          ? "AUTH was refused: the password is wrong, or the server has none (" + Said(reply) + ")"
          : "AUTH with a user was refused: wrong, or the server has no users (" + Said(reply) +
                ")");
}

Handshake::State Handshake::OnRole(const resp::Value& reply, wire::Buffer& out) {
  // A user that may not ask for the role is taken at the Sentinel's word.
  if (reply.IsError()) return Go(Step::kReady, out);
  const bool named = reply.IsList() && !reply.items.empty() && reply.items[0].IsString();
  if (!named || reply.items[0].text != "master") {
    return Fail(ErrorCode::kUnavailable, "the server is not a master");
  }
  return Go(Step::kReady, out);
}

Handshake::State Handshake::OnReply(const resp::Value& reply, wire::Buffer& out) {
  switch (step_) {
    case Step::kHello:
      return OnHello(reply, out);
    case Step::kAuth:
      return OnAuth(reply, out);
    case Step::kName:  // A name is for people who look at CLIENT LIST; it may be refused.
      if (reply.IsError() && MeaningOf(reply.text).kind == ErrorKind::kNoAuth) {
        return Fail(ErrorCode::kPermissionDenied,
                    "the server wants a password and none is configured (NOAUTH)");
      }
      return Go(Step::kSelect, out);
    case Step::kSelect:
      if (!reply.IsError()) return Go(Step::kRole, out);
      if (MeaningOf(reply.text).kind == ErrorKind::kNoAuth) {
        return Fail(ErrorCode::kPermissionDenied,
                    "the server wants a password and none is configured (NOAUTH)");
      }
      return Fail(ErrorCode::kFailedPrecondition, "database " + std::to_string(options_.database) +
                                                      " cannot be selected (" + Said(reply) + ")");
    case Step::kRole:
      return OnRole(reply, out);
    case Step::kReady:
      return State::kReady;
    case Step::kFailed:
      break;
  }
  return State::kFailed;
}

}  // namespace weir::redis
