// The first words on a connection: protocol, password, name, database, and whether the server is a
// master. Pure: replies in, commands out.
//
//   Handshake handshake(options);
//   handshake.Start(out);                       // send out
//   while (handshake.OnReply(reply, out) == Handshake::State::kMore) …   // send out, read a reply
//
// HELLO 3 carries all of it to a server of today. One that does not know HELLO (before Redis 6, and
// some proxies) is spoken to in RESP2 with AUTH and CLIENT SETNAME.
//
// Errors never hold a password, and nothing that the server says but its error's first word:
// servers repeat the arguments of commands that they do not know.
// Thread safety: none; one owner.
#pragma once

#include <cstdint>
#include <string>

#include "redis/client_options.h"
#include "weir/result.h"
#include "wire/buffer.h"
#include "wire/resp/value.h"

namespace weir::redis {

class Handshake {
 public:
  struct Options {
    Credentials credentials;
    std::string client_name;  // "": none.
    int database = 0;
    bool require_master = false;  // Fails on a replica.
  };
  enum class State : uint8_t { kMore, kReady, kFailed };

  explicit Handshake(Options options) : options_(std::move(options)) {}

  // Appends the first command.
  void Start(wire::Buffer& out);
  // For each reply, pushes left out. kMore: send what was appended. kFailed: error() says why.
  State OnReply(const resp::Value& reply, wire::Buffer& out);

  const Error& error() const { return error_; }
  int protocol() const { return protocol_; }  // 2 or 3, once ready.

 private:
  enum class Step : uint8_t { kHello, kAuth, kName, kSelect, kRole, kReady, kFailed };
  bool has_credentials() const {
    return !options_.credentials.user.empty() || !options_.credentials.password.empty();
  }
  State Go(Step step, wire::Buffer& out);  // To the first step from here on that has work to do.
  State Fail(ErrorCode code, std::string message);
  State OnHello(const resp::Value& reply, wire::Buffer& out);
  State OnAuth(const resp::Value& reply, wire::Buffer& out);
  State OnRole(const resp::Value& reply, wire::Buffer& out);

  const Options options_;
  Step step_ = Step::kHello;
  int protocol_ = 2;
  Error error_;
};

}  // namespace weir::redis
