// A master with a replica, watched by three Sentinels, of a test's own.
//
//   RedisSentinels sentinels;
//   auto client = Client::Create(loop, resolver, ParseUrl(sentinels.url()).value());
//   sentinels.FailOver();                       // on purpose; or sentinels.server(0).Kill()
//
// Thread safety: none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "testing/redis_server.h"

namespace weir::testing {

class RedisSentinels {
 public:
  explicit RedisSentinels(const std::string& program = "redis-server") {
    for (int i = 0; i < 2; ++i) {
      RedisServer::Options options;
      options.program = program;
      options.arguments = {"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"};
      servers_.push_back(std::make_unique<RedisServer>(std::move(options)));
    }
    servers_[1]->Console().Call({"REPLICAOF", "127.0.0.1", servers_[0]->port_text()});
    WaitFor("the replica to follow",
            [&] { return servers_[1]->Info("replication", "master_link_status") == "up"; });
    for (int i = 0; i < 3; ++i) {
      RedisServer::Options options;
      options.program = program;
      options.is_sentinel = true;
      options.configuration = "sentinel monitor mymaster 127.0.0.1 " + servers_[0]->port_text() +
                              " 2\nsentinel down-after-milliseconds mymaster 500\n"
                              "sentinel failover-timeout mymaster 1000\n";
      sentinels_.push_back(std::make_unique<RedisServer>(std::move(options)));
    }
    WaitFor("the Sentinels to know each other and the replica", [&] {
      for (const auto& sentinel : sentinels_) {
        RedisConsole console = sentinel->Console();
        if (console.Call({"SENTINEL", "SENTINELS", "mymaster"}).items.size() != 2) return false;
        if (console.Call({"SENTINEL", "REPLICAS", "mymaster"}).items.size() != 1) return false;
      }
      return true;
    });
  }

  RedisServer& server(int i) { return *servers_[static_cast<size_t>(i)]; }
  RedisServer& sentinel(int i) { return *sentinels_[static_cast<size_t>(i)]; }
  std::string url() {
    return "redis+sentinel://127.0.0.1:" + sentinel(0).port_text() +
           ",127.0.0.1:" + sentinel(1).port_text() + "/mymaster";
  }
  void FailOver() {
    WaitFor("a Sentinel to begin a failover", [&] {
      return !sentinel(0).Console().Call({"SENTINEL", "FAILOVER", "mymaster"}).IsError();
    });
  }

 private:
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<std::unique_ptr<RedisServer>> sentinels_;
};

}  // namespace weir::testing
