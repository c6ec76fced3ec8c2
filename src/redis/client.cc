#include "redis/client.h"

#include <utility>

#include "redis/core.h"

namespace weir::redis {

std::unique_ptr<Client> Client::Create(net::EventLoop& loop, net::Resolver& resolver,
                                       ClientOptions options) {
  return std::unique_ptr<Client>(new Client(Core::Create(loop, resolver, std::move(options))));
}

Client::Client(std::shared_ptr<Core> core) : core_(std::move(core)) {}

Client::~Client() { core_->Close(); }

Task<Result<resp::Value>> Client::RunScript(std::string_view sha1, std::string_view text,
                                            std::span<const std::string_view> keys,
                                            std::span<const std::string_view> args,
                                            CallOptions options) {
  Request request;
  request.sha1 = sha1;
  request.text = text;
  request.keys = keys;
  request.args = args;
  const std::string_view slot_key = keys.empty() ? std::string_view() : keys.front();
  return Core::Perform(core_, request, slot_key, std::move(options));
}

Task<Result<resp::Value>> Client::Call(std::span<const std::string_view> words,
                                       std::string_view slot_key, CallOptions options) {
  Request request;
  request.words = words;
  return Core::Perform(core_, request, slot_key, std::move(options));
}

uint16_t Client::GroupOf(std::string_view key) const { return core_->GroupOf(key); }

Client::Stats Client::stats() const { return core_->stats(); }

const std::string& Client::last_fault() const { return core_->last_fault(); }

}  // namespace weir::redis
