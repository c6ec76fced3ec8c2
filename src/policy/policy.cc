#include "policy/policy.h"

#include <algorithm>
#include <cstdlib>

#include "policy/config_files.h"
#include "policy/limit_reader.h"
#include "policy/sections.h"
#include "policy/yaml_reader.h"

namespace weir::policy {

// Builds a Policy from its files, section by section, then checks what only shows across sections.
class PolicyCompiler {
 public:
  explicit PolicyCompiler(const Env& env) : reader_(env), files_(reader_) {}

  ConfigFiles& files() { return files_; }

  Policy::LoadResult Compile() {
    ReadSettings();
    ReadLists();
    CheckTogether();
    if (reader_.has_errors()) return std::unexpected(reader_.TakeErrors());
    policy_->warnings_ = reader_.TakeWarnings();
    policy_->files_ = reader_.files();
    policy_->files_.insert(policy_->files_.end(), files_.patterns().begin(),
                           files_.patterns().end());
    return std::shared_ptr<const Policy>(std::move(policy_));
  }

 private:
  void ReadSettings() {
    Config& config = policy_->config_;
    if (const YamlNode* node = files_.Find("listen")) ReadListen(reader_, *node, config.listen);
    if (const YamlNode* node = files_.Find("store")) ReadStore(reader_, *node, config.store);
    if (const YamlNode* node = files_.Find("identity")) {
      ReadIdentity(reader_, *node, config.identity);
    }
    if (const YamlNode* node = files_.Find("timeouts")) {
      ReadTimeouts(reader_, *node, config.timeouts);
    }
    if (const YamlNode* node = files_.Find("bounds")) ReadBounds(reader_, *node, config.bounds);
    if (const YamlNode* node = files_.Find("answers")) ReadAnswers(reader_, *node, config.answers);
    if (const YamlNode* node = files_.Find("cors")) ReadCors(reader_, *node, config.cors);
    if (const YamlNode* node = files_.Find("threads")) {
      config.threads = static_cast<int>(reader_.Integer(*node, "threads", 0, 1024).value_or(0));
    }
    if (const YamlNode* node = files_.Find("config")) {
      const MapReader map(reader_, *node, "config", {"watch"});
      if (const YamlNode* watch = map.Find("watch")) {
        config.watch = reader_.Bool(*watch, "config.watch").value_or(false);
      }
    }
  }

  void ReadLists() {
    Config& config = policy_->config_;
    for (const YamlNode* node : files_.Items("attributes")) {
      const auto name = reader_.Text(*node, "attributes");
      if (!name) continue;
      const auto added =
          name->starts_with("header.")
              ? InvalidArgument("headers need no declaration; leave `" + *name + "` out")
              : policy_->attributes_.Add(*name);
      if (!added) reader_.Fail(node->mark, "attributes: " + added.error().message);
    }
    int index = 0;
    for (const YamlNode* node : files_.Items("upstreams")) {
      const size_t before = config.upstreams.size();
      ReadUpstream(reader_, *node, "upstreams[" + std::to_string(index++) + "]", config.upstreams);
      if (config.upstreams.size() > before) {
        RefuseDoubledUpstream(*node, config.upstreams.back().name);
      }
    }
    std::vector<Route> routes;
    index = 0;
    for (const YamlNode* node : files_.Items("routes")) {
      ReadRoute(reader_, *node, "routes[" + std::to_string(index++) + "]", config.upstreams,
                routes);
    }
    policy_->routes_ = RouteTable(std::move(routes));
    ReadLimits();
  }

  void RefuseDoubledUpstream(const YamlNode& node, const std::string& name) {
    const auto [known, is_new] = upstream_names_.try_emplace(name, node.mark);
    if (is_new || name.empty()) return;
    reader_.Fail(node.mark, "upstream `" + name + "` is defined twice: here and at " +
                                reader_.PlaceText(known->second));
  }

  void ReadLimits() {
    LimitReader limits(reader_, policy_->attributes_, policy_->config_.listen.gateway.has_value());
    int by_attributes = 0;
    int by_descriptor = 0;
    for (const YamlNode* node : files_.Items("limits")) {
      const bool binds = HasKey(*node, "descriptor");
      const int most = binds ? Policy::kMaxDescriptorLimits : Policy::kMaxLimits;
      if (++(binds ? by_descriptor : by_attributes) > most) {
        reader_.Fail(node->mark, "more than " + std::to_string(most) +
                                     (binds ? " limits with `descriptor`" : " limits"));
        return;
      }
      limits.Read(*node);
    }
    policy_->limits_ = limits.Take();
    for (const Limit& limit : policy_->limits_) {
      if (limit.descriptor) policy_->descriptors_.Add(*limit.descriptor, limit.index);
    }
  }

  static bool HasKey(const YamlNode& node, std::string_view key) {
    return std::ranges::any_of(node.entries,
                               [&](const YamlEntry& entry) { return entry.key->text == key; });
  }

  void CheckTogether() {
    if (const auto ambiguity = policy_->routes_.FindAmbiguity()) {
      const auto& [first, second] = *ambiguity;
      const auto file = std::ranges::find(reader_.files(), second->place.file);
      reader_.Fail({static_cast<int>(file - reader_.files().begin()), second->place.line,
                    second->place.column},
                   "this route and the one at " + ToString(first->place) +
                       " match the same calls (path `" + second->path.spelling() +
                       "`); tell them apart by method or host");
    }
    const Config& config = policy_->config_;
    const YamlNode* const identity = files_.Find("identity");
    // A secret that cannot be read has been refused for that.
    const bool has_secret = identity != nullptr && HasKey(*identity, "secret");
    if (config.store.kind == StoreKind::kRedis && !has_secret) {
      reader_.Fail(files_.Find("store")->mark,
                   "store.kind `redis` needs `identity.secret`: under it all nodes name the same "
                   "counters alike; `openssl rand -hex 32` makes one");
    }
    WarnOfIdleLimits(config.listen);
    if (config.listen.gateway && policy_->routes_.routes().empty()) {
      reader_.Warn(files_.start(),
                   "`listen.gateway` is on, but there are no `routes`: it forwards "
                   "nothing");
    }
    if (!config.listen.gateway && !policy_->routes_.routes().empty()) {
      reader_.Warn(files_.start(),
                   "there are `routes`, but `listen.gateway` is off: they serve "
                   "nothing");
    }
  }

  // A door that nothing limits, and limits that nobody asks for, are hardly meant.
  void WarnOfIdleLimits(const ListenConfig& listen) {
    const auto by_descriptor = std::ranges::count_if(
        policy_->limits_, [](const Limit& limit) { return limit.descriptor.has_value(); });
    const auto by_attributes = std::ssize(policy_->limits_) - by_descriptor;
    const bool asks_by_attributes = listen.gateway || listen.api || listen.resp;
    if (policy_->limits_.empty()) {
      reader_.Warn(files_.start(), "there are no `limits`: every call is allowed");
      return;
    }
    if (listen.grpc && by_descriptor == 0) {
      reader_.Warn(files_.start(),
                   "`listen.grpc` is on, but no limit has a `domain` and a `descriptor`: it allows "
                   "every call");
    }
    if (by_descriptor > 0 && !listen.grpc && asks_by_attributes) {
      reader_.Warn(files_.start(),
                   "there are limits with `descriptor`, but `listen.grpc` is off: nobody asks for "
                   "them");
    }
    if (by_attributes == 0 && asks_by_attributes) {
      reader_.Warn(files_.start(),
                   "every limit has a `descriptor`, for which only `listen.grpc` asks: the other "
                   "doors allow every call");
    }
  }

  std::shared_ptr<Policy> policy_{new Policy()};
  YamlReader reader_;
  ConfigFiles files_;
  std::unordered_map<std::string, YamlMark> upstream_names_;
};

std::string ToString(const ConfigError& error) {
  return ToString(Place{error.file, error.line, error.column}) + ": " + error.message;
}

Env ProcessEnv() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

Policy::LoadResult Policy::Load(const std::string& path, const Env& env) {
  PolicyCompiler compiler(env);
  compiler.files().Load(path);
  return compiler.Compile();
}

Policy::LoadResult Policy::FromText(std::string text, const std::string& file_name,
                                    const Env& env) {
  PolicyCompiler compiler(env);
  compiler.files().LoadText(text, file_name);
  return compiler.Compile();
}

const Limit* Policy::FindLimit(std::string_view name) const {
  const auto found = std::ranges::find(limits_, name, &Limit::name);
  return found == limits_.end() ? nullptr : &*found;
}

std::string_view ConsistencyName(Consistency consistency) {
  switch (consistency) {
    case Consistency::kExact:
      return "exact";
    case Consistency::kLocal:
      return "local";
    case Consistency::kLeased:
      return "leased";
    case Consistency::kLeasedFast:
      return "leased_fast";
  }
  return "";
}

}  // namespace weir::policy
