#include "policy/reload.h"

#include <algorithm>

namespace weir::policy {
namespace {

void CompareDoor(std::string_view name, const std::optional<DoorConfig>& running,
                 const std::optional<DoorConfig>& next, std::vector<std::string>& out) {
  if (running == next) return;
  std::string line = "listen." + std::string(name) + ": ";
  if (!running) {
    line += "the door was off and is now on";
  } else if (!next) {
    line += "the door was on and is now off";
  } else if (running->address != next->address) {
    line += "the address changed from " + running->address + " to " + next->address;
  } else if (running->tls != next->tls) {
    line += "the TLS files changed";
  } else if (running->max_connection_age != next->max_connection_age) {
    line += "max_connection_age changed";
  } else {
    line += "the token changed";
  }
  out.push_back(std::move(line));
}

void CompareServer(const Config& running, const Config& next, std::vector<std::string>& out) {
  CompareDoor("gateway", running.listen.gateway, next.listen.gateway, out);
  CompareDoor("api", running.listen.api, next.listen.api, out);
  CompareDoor("admin", running.listen.admin, next.listen.admin, out);
  CompareDoor("ops", running.listen.ops, next.listen.ops, out);
  CompareDoor("resp", running.listen.resp, next.listen.resp, out);
  CompareDoor("grpc", running.listen.grpc, next.listen.grpc, out);
  if (running.threads != next.threads) {
    out.push_back("threads: changed from " + std::to_string(running.threads) + " to " +
                  std::to_string(next.threads));
  }
  if (running.store != next.store) out.push_back("store: its settings changed");
  if (running.identity.secret != next.identity.secret) {
    out.push_back("identity.secret: changed, which would give every client a new id");
  }
}

std::string PerText(const Policy& policy, const Limit& limit) {
  std::string out = "[";
  for (int attribute : limit.per) {
    if (out.size() > 1) out += ", ";
    out += policy.attributes().NameOf(attribute);
  }
  return out + "]";
}

// What of a descriptor names the counters: its values may become more or less exact.
std::string KeysText(const Limit& limit) {
  if (!limit.descriptor) return "none";
  std::string out = limit.descriptor->domain + " [";
  for (const EntryPattern& entry : limit.descriptor->entries)
    out += (out.ends_with('[') ? "" : ", ") + entry.key;
  return out + "]";
}

// Both kinds of lease have one counter.
Consistency CounterOf(Consistency consistency) {
  return consistency == Consistency::kLeasedFast ? Consistency::kLeased : consistency;
}

// Why the counters of a limit cannot go on; empty when they can.
std::string WhyAfresh(const Policy& running, const Limit& was, const Policy& next,
                      const Limit& is) {
  const core::MeterSpec& old_spec = was.variants[0].spec;
  const core::MeterSpec& new_spec = is.variants[0].spec;
  if (was.unit != is.unit) {
    return "the unit changed from " + std::string(UnitName(was.unit)) + " to " +
           std::string(UnitName(is.unit));
  }
  const std::string old_per = PerText(running, was);
  const std::string new_per = PerText(next, is);
  if (old_per != new_per) return "`per` changed from " + old_per + " to " + new_per;
  if (KeysText(was) != KeysText(is))
    return "`descriptor` changed from " + KeysText(was) + " to " + KeysText(is);
  if (old_spec.algorithm != new_spec.algorithm) {
    return "the algorithm changed from " + std::string(AlgorithmName(old_spec.algorithm)) + " to " +
           std::string(AlgorithmName(new_spec.algorithm));
  }
  const bool shared = next.config().store.kind == StoreKind::kRedis;
  if (shared && CounterOf(was.consistency) != CounterOf(is.consistency)) {
    return "`consistency` changed from " + std::string(ConsistencyName(was.consistency)) + " to " +
           std::string(ConsistencyName(is.consistency));
  }
  if (was.variants[0].unlimited || is.variants[0].unlimited) return "";
  if (was.variants[0].identity != is.variants[0].identity) {
    return "the period changed, and with it the windows";
  }
  return "";
}

bool SameRates(const Limit& was, const Limit& is) {
  return std::ranges::equal(was.variants, is.variants, [](const Variant& a, const Variant& b) {
    return a.unlimited == b.unlimited && a.spec == b.spec && a.when == b.when;
  });
}

}  // namespace

ReloadPlan Diff(const Policy& running, const Policy& next) {
  ReloadPlan plan;
  CompareServer(running.config(), next.config(), plan.restart_needed);
  for (const Limit& is : next.limits()) {
    const Limit* was = running.FindLimit(is.name);
    if (was == nullptr) {
      plan.added.push_back(is.name);
      continue;
    }
    const std::string why = WhyAfresh(running, *was, next, is);
    if (!why.empty()) {
      plan.restarted.push_back(is.name);
      plan.warnings.push_back("limit `" + is.name + "`: " + why + "; its counters start afresh");
    } else if (!SameRates(*was, is)) {
      plan.rerated.push_back(is.name);
    }
  }
  for (const Limit& was : running.limits()) {
    if (next.FindLimit(was.name) == nullptr) plan.removed.push_back(was.name);
  }
  return plan;
}

std::string RestartMessage(const ReloadPlan& plan) {
  if (plan.restart_needed.empty()) return "";
  std::string out = "restart to apply: ";
  for (size_t i = 0; i < plan.restart_needed.size(); ++i) {
    out += (i > 0 ? "; " : "") + plan.restart_needed[i];
  }
  return out;
}

}  // namespace weir::policy
