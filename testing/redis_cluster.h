// A Redis Cluster of a test's own: three masters with a replica each.
//
//   RedisCluster cluster;
//   auto client = Client::Create(loop, resolver, ParseUrl(cluster.url()).value());
//   cluster.MoveSlot(KeySlot(key), 0, 1);           // while the client goes on
//   cluster.KillMaster(2);                          // its replica takes over after about two
//   seconds
//
// No replica takes over before a test kills a master: on a machine so busy that a healthy master
// misses the node timeout, roles stay as the test knows them.
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
                           "0",
                           "--cluster-replica-no-failover",
                           "yes"};
      servers_.push_back(std::make_unique<RedisServer>(std::move(options)));
      bus_ports_.push_back(
          servers_.back()->Console().Call({"CONFIG", "GET", "cluster-port"}).items.at(1).text);
    }
    // Epochs first: a node that has met another takes none, and equal ones must first be fought
    // out.
    for (size_t i = 0; i < servers_.size(); ++i) {
      Must(*servers_[i], {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    }
    WaitFor("the nodes to have met", [&] { return HaveMet(); }, 60);
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
    std::string missing;
    try {
      WaitFor("the Cluster to be whole", [&] { return (missing = WhatIsMissing()).empty(); }, 60);
    } catch (const std::exception& error) {
      throw std::runtime_error(std::string(error.what()) + "; " + missing);
    }
  }

  RedisServer& master(int i) { return *servers_[static_cast<size_t>(i)]; }
  RedisServer& replica(int i) { return *servers_[static_cast<size_t>(kMasters + i)]; }
  // For good; its replica, which then has every write so far, may take over.
  void KillMaster(int i) {
    master(i).Console().Call({"WAIT", "1", "1000"});
    Must(replica(i), {"CONFIG", "SET", "cluster-replica-no-failover", "no"});
    master(i).Kill();
  }
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
  static std::string StateField(const RedisServer& server, const std::string& name) {
    const std::string info = server.Console().Call({"CLUSTER", "INFO"}).text;
    const size_t at = info.find(name + ":");
    return at == std::string::npos ? "" : info.substr(at, info.find('\r', at) - at);
  }

  // Every node knows every other. The first introduces itself to those that are missing, again each
  // time: a handshake that takes longer than the node timeout is given up.
  bool HaveMet() {
    bool all = true;
    for (size_t i = 1; i < servers_.size(); ++i) {
      const std::string known = "cluster_known_nodes:" + std::to_string(servers_.size());
      if (StateField(*servers_[i], "cluster_known_nodes") == known &&
          servers_[i]->Console().Call({"CLUSTER", "NODES"}).text.find("handshake") ==
              std::string::npos) {
        continue;
      }
      all = false;
      Must(*servers_.front(),
           {"CLUSTER", "MEET", "127.0.0.1", servers_[i]->port_text(), bus_ports_[i]});
    }
    return all;
  }

  // "": each node names three masters with a replica each, all reachable and in step.
  std::string WhatIsMissing() {
    for (const auto& server : servers_) {
      const resp::Value ranges = server->Console().Call({"CLUSTER", "SLOTS"});
      bool complete = ranges.items.size() == kMasters;
      for (const resp::Value& range : ranges.items) {
        complete = complete && range.items.size() == 4;  // First, last, master, replica.
      }
      if (!complete || StateField(*server, "cluster_state") != "cluster_state:ok") {
        return server->port_text() + " sees\n" + server->Console().Call({"CLUSTER", "NODES"}).text;
      }
    }
    for (int i = 0; i < kMasters; ++i) {
      if (replica(i).Info("replication", "master_link_status") != "up") {
        return replica(i).port_text() + " has not copied its master";
      }
    }
    return "";
  }

  bool AgreeOnEpoch() {
    std::vector<std::string> epochs;
    for (int i = 0; i < kMasters; ++i) {
      epochs.push_back(StateField(master(i), "cluster_current_epoch"));
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
