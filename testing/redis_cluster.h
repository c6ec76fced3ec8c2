// A Redis Cluster of a test's own: three masters with a replica each.
//
//   RedisCluster cluster;
//   auto client = Client::Create(loop, resolver, ParseUrl(cluster.url()).value());
//   cluster.MoveSlot(KeySlot(key), 0, 1);           // while the client goes on
//   cluster.master(2).Kill();                       // its replica takes over after about two
//   seconds
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "testing/redis_server.h"

namespace weir::testing {

class RedisCluster {
 public:
  static constexpr int kMasters = 3;

  explicit RedisCluster(const std::string& program = "redis-server") {
    for (int i = 0; i < 2 * kMasters; ++i) {
      RedisServer::Options options;
      options.program = program;
      // The short period: a replica is listed once it has received something.
      options.arguments = {"--cluster-enabled",
                           "yes",
                           "--cluster-node-timeout",
                           "1000",
                           "--cluster-port",
                           std::to_string(FreePort()),
                           "--cluster-config-file",
                           "nodes.conf",
                           "--repl-ping-replica-period",
                           "1",
                           "--repl-diskless-sync-delay",
                           "0",
                           "--cluster-replica-validity-factor",
                           "0"};
      servers_.push_back(std::make_unique<RedisServer>(std::move(options)));
      bus_ports_.push_back(
          servers_.back()->Console().Call({"CONFIG", "GET", "cluster-port"}).items.at(1).text);
    }
    for (size_t i = 0; i < servers_.size(); ++i) {
      RedisConsole console = servers_[i]->Console();
      console.Call({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
      for (size_t other = 0; other < servers_.size(); ++other) {
        console.Call(
            {"CLUSTER", "MEET", "127.0.0.1", servers_[other]->port_text(), bus_ports_[other]});
      }
    }
    for (int i = 0; i < kMasters; ++i) {
      const std::string first = std::to_string(16384 * i / kMasters);
      const std::string last = std::to_string(16384 * (i + 1) / kMasters - 1);
      master(i).Console().Call({"CLUSTER", "ADDSLOTSRANGE", first, last});
    }
    for (int i = 0; i < kMasters; ++i) {
      const std::string id = IdOf(master(i));
      RedisConsole console = replica(i).Console();
      WaitFor("a replica to know its master",
              [&] { return !console.Call({"CLUSTER", "REPLICATE", id}).IsError(); });
    }
    WaitFor(
        "the Cluster to be whole",
        [&] {
          for (const auto& server : servers_) {
            const resp::Value ranges = server->Console().Call({"CLUSTER", "SLOTS"});
            if (ranges.items.size() != kMasters) return false;
            for (const resp::Value& range : ranges.items) {
              if (range.items.size() != 4) return false;  // First, last, master, replica.
            }
            if (server->Console().Call({"CLUSTER", "INFO"}).text.find("cluster_state:ok") ==
                std::string::npos) {
              return false;
            }
          }
          for (int i = 0; i < kMasters; ++i) {
            if (replica(i).Info("replication", "master_link_status") != "up") return false;
          }
          return true;
        },
        60);
  }

  RedisServer& master(int i) { return *servers_[static_cast<size_t>(i)]; }
  RedisServer& replica(int i) { return *servers_[static_cast<size_t>(kMasters + i)]; }
  std::string url() { return "redis+cluster://127.0.0.1:" + master(0).port_text(); }
  // Which master has a slot at the start.
  static int OwnerOf(int slot) {
    for (int i = 0; i < kMasters; ++i) {
      if (slot < 16384 * (i + 1) / kMasters) return i;
    }
    return -1;
  }
  static std::string IdOf(RedisServer& server) {
    return server.Console().Call({"CLUSTER", "MYID"}).text;
  }

  // The steps of a migration, one by one. Between Begin and Finish the slot answers ASK and
  // TRYAGAIN.
  void BeginMove(int slot, int from, int to) {
    const std::string text = std::to_string(slot);
    Must(master(to), {"CLUSTER", "SETSLOT", text, "IMPORTING", IdOf(master(from))});
    Must(master(from), {"CLUSTER", "SETSLOT", text, "MIGRATING", IdOf(master(to))});
  }
  // Moves up to `count` keys of the slot; returns how many.
  int MoveKeys(int slot, int from, int to, int count) {
    const resp::Value keys = Must(
        master(from), {"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), std::to_string(count)});
    for (const resp::Value& key : keys.items) {
      Must(master(from), {"MIGRATE", "127.0.0.1", master(to).port_text(), key.text, "0", "5000"});
    }
    return static_cast<int>(keys.items.size());
  }
  // First lets the masters hear of each other's epochs, some milliseconds after a move: a new owner
  // takes a higher epoch only above those it knows of, and one that does not know of the old
  // owner's loses the slot to its next message, so that each names the other.
  void FinishMove(int slot, int from, int to) {
    WaitFor("the masters to agree on the epoch", [&] { return AgreeOnEpoch(); });
    const std::string text = std::to_string(slot);
    const std::string id = IdOf(master(to));
    Must(master(to), {"CLUSTER", "SETSLOT", text, "NODE", id});
    Must(master(from), {"CLUSTER", "SETSLOT", text, "NODE", id});
  }
  void MoveSlot(int slot, int from, int to) {
    BeginMove(slot, from, to);
    while (MoveKeys(slot, from, to, 100) > 0) {
    }
    FinishMove(slot, from, to);
  }

 private:
  bool AgreeOnEpoch() {
    std::vector<std::string> epochs;
    for (int i = 0; i < kMasters; ++i) {
      const std::string info = master(i).Console().Call({"CLUSTER", "INFO"}).text;
      const size_t at = info.find("cluster_current_epoch:");
      epochs.push_back(info.substr(at, info.find('\r', at) - at));
    }
    return std::count(epochs.begin(), epochs.end(), epochs.front()) == kMasters;
  }

  static resp::Value Must(const RedisServer& server, const std::vector<std::string_view>& words) {
    resp::Value reply = server.Console().Call(words);
    if (reply.IsError()) throw std::runtime_error(std::string(words[1]) + ": " + reply.text);
    return reply;
  }

  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<std::string> bus_ports_;
};

}  // namespace weir::testing
