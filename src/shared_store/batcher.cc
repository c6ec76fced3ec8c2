#include "shared_store/batcher.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/when_all.h"

namespace weir::shared_store {
namespace {

// A settle that the store was not told is told again for so long, with these pauses.
constexpr int64_t kRetryNs = 30'000'000'000;
constexpr int64_t kPauseMinNs = 100'000'000;
constexpr int64_t kPauseMaxNs = 2'000'000'000;

metrics::WeirMetrics::BreakerState ShownState(store::lease::Breaker::State state) {
  switch (state) {
    case store::lease::Breaker::State::kClosed:
      return metrics::WeirMetrics::BreakerState::kClosed;
    case store::lease::Breaker::State::kOpen:
      return metrics::WeirMetrics::BreakerState::kOpen;
    case store::lease::Breaker::State::kHalfOpen:
      break;
  }
  return metrics::WeirMetrics::BreakerState::kHalfOpen;
}

}  // namespace

Batcher::Batcher(Options options)
    : options_(std::move(options)),
      queue_(*options_.loop, [this](Parts parts) { return Send(std::move(parts)); }),
      ids_(std::random_device()()) {}

uint16_t Batcher::GroupOf(uint64_t tag) const {
  return options_.client->GroupOf(store::redis::TagKey(options_.prefix, tag));
}

bool Batcher::Submit(PartPtr part) {
  const uint16_t group = part->group;
  return queue_.Push(group, std::move(part), Lane::kAwaited);
}

Task<void> Batcher::Send(Parts parts) {
  std::erase_if(parts, [](const PartPtr& part) { return part->abandoned; });
  if (parts.empty()) co_return;
  net::EventLoop& loop = *options_.loop;
  const int64_t sent_ns = loop.now_ns();
  int64_t unix_ns = loop.wall_ns();
  // A second time only where the clocks lie in different windows of a calendar.
  for (int tries = 2; tries > 0; --tries) {
    store::redis::DecideCall call(options_.prefix, unix_ns);
    for (const PartPtr& part : parts) {
      part->sent_ns = sent_ns;
      call.Add(part->charges, part->tags, part->mode);
    }
    redis::CallOptions options(sent_ns + options_.timeout_ns);
    // Whoever waited has been answered otherwise by then: what was charged goes back.
    options.on_late = [this, parts](resp::Value reply) { Deliver(parts, reply); };
    const store::redis::ScriptCall script = call.Build();
    const Result<resp::Value> reply =
        co_await Run(script, metrics::StoreOp::kDecide, std::move(options));
    if (!reply) {
      Fail(parts);
      break;
    }
    if (Deliver(parts, *reply) == Delivered::kYes) break;
    unix_ns = store::redis::DecideReply::Parse(*reply)->server_unix_ns();
    if (tries == 1) Fail(parts);
  }
}

Batcher::Delivered Batcher::Deliver(const Parts& parts, const resp::Value& reply) {
  Result<store::redis::DecideReply> answer = store::redis::DecideReply::Parse(reply);
  if (answer && answer->stale()) return Delivered::kStale;
  for (const PartPtr& part : parts) {
    part->outcomes.assign(part->charges.size(), {});
    Result<bool> admitted =
        answer ? answer->Next(part->charges, part->outcomes) : std::unexpected(answer.error());
    if (part->abandoned) {
      if (admitted) Undo(*part);
      continue;
    }
    part->state = admitted ? Part::State::kAnswered : Part::State::kFailed;
    part->admitted = admitted && *admitted;
    part->done.Set();
  }
  return Delivered::kYes;
}

// What was charged for somebody who has gone on without it.
void Batcher::Undo(const Part& part) {
  Charges charges;
  for (size_t i = 0; i < part.charges.size(); ++i) {
    if (!part.outcomes[i].charged) continue;
    charges.push_back({.meter = part.charges[i].meter,
                       .key = part.charges[i].key,
                       .tag = part.tags[i],
                       .receipt = part.outcomes[i].receipt,
                       .reserved = part.charges[i].cost});
  }
  if (charges.empty()) return;
  for (Errand& errand : ErrandsOf(Errand::Kind::kSettle, std::move(charges), 0))
    options_.loop->Spawn(RunUntilTold(std::move(errand)));
}

void Batcher::Fail(const Parts& parts) {
  for (const PartPtr& part : parts) {
    part->state = Part::State::kFailed;
    part->done.Set();
  }
}

Task<Result<resp::Value>> Batcher::Run(const store::redis::ScriptCall& call, metrics::StoreOp op,
                                       redis::CallOptions options) {
  net::EventLoop& loop = *options_.loop;
  const int64_t sent_ns = loop.now_ns();
  Result<resp::Value> reply = co_await options_.client->RunScript(call.sha1, call.text, call.keys,
                                                                  call.args, std::move(options));
  const int64_t now_ns = loop.now_ns();
  options_.metrics->OnStoreRequest(options_.shard, op, now_ns - sent_ns);
  if (reply) {
    options_.breaker->Succeeded(sent_ns);
  } else {
    options_.breaker->Failed(sent_ns, now_ns);
  }
  options_.metrics->SetBreakerState(options_.shard, ShownState(options_.breaker->state()));
  co_return reply;
}

std::vector<Batcher::Errand> Batcher::ErrandsOf(Errand::Kind kind, Charges charges,
                                                int64_t ttl_ns) {
  std::unordered_map<uint16_t, Charges> groups;
  for (const store::SharedCharge& charge : charges) groups[GroupOf(charge.tag)].push_back(charge);
  std::vector<Errand> errands;
  for (auto& [number, group] : groups) {
    Errand& errand = errands.emplace_back();
    errand.kind = kind;
    errand.charges = std::move(group);
    errand.ttl_ns = ttl_ns;
    errand.id = ids_() >> 11 | 1;
  }
  return errands;
}

Task<void> Batcher::RunErrand(Errand& errand) {
  int64_t unix_ns = options_.loop->wall_ns();
  const metrics::StoreOp op =
      errand.kind == Errand::Kind::kReset ? metrics::StoreOp::kReset : metrics::StoreOp::kSettle;
  for (int tries = 2; tries > 0; --tries) {
    store::redis::SettleCall call(options_.prefix,
                                  errand.kind == Errand::Kind::kSettle ? errand.id : 0, unix_ns);
    for (const store::SharedCharge& charge : errand.charges) {
      switch (errand.kind) {
        case Errand::Kind::kSettle:
          call.Settle(charge);
          break;
        case Errand::Kind::kRenew:
          call.Renew(charge, errand.ttl_ns);
          break;
        case Errand::Kind::kReset:
          call.Reset(charge);
          break;
      }
    }
    const int64_t deadline_ns = options_.loop->now_ns() + options_.timeout_ns;
    const store::redis::ScriptCall script = call.Build();
    const Result<resp::Value> reply = co_await Run(script, op, deadline_ns);
    if (!reply) co_return;
    const Result<store::redis::SettleReply> answer = store::redis::SettleReply::Parse(*reply);
    if (!answer) co_return;
    if (answer->stale) {
      unix_ns = answer->server_unix_ns;
      continue;
    }
    errand.told = true;
    errand.all_done = std::ranges::all_of(answer->done, [](bool done) { return done; });
    co_return;
  }
}

Task<void> Batcher::RunUntilTold(Errand errand) {
  if (retries_ >= kRetriesMax) co_return;
  ++retries_;
  const int64_t until_ns = options_.loop->now_ns() + kRetryNs;
  int64_t pause_ns = kPauseMinNs;
  for (;;) {
    co_await RunErrand(errand);
    if (errand.told || options_.loop->now_ns() + pause_ns >= until_ns) break;
    co_await options_.loop->SleepFor(pause_ns);
    pause_ns = std::min(pause_ns * 2, kPauseMaxNs);
  }
  --retries_;
}

Task<void> Batcher::RunAll(std::vector<Errand>& errands) {
  std::vector<Task<void>> tasks;
  tasks.reserve(errands.size());
  for (Errand& errand : errands) tasks.push_back(RunErrand(errand));
  co_await WhenAll(std::move(tasks));
}

Task<bool> Batcher::Settle(std::vector<store::SharedCharge> charges) {
  std::vector<Errand> errands = ErrandsOf(Errand::Kind::kSettle, std::move(charges), 0);
  co_await RunAll(errands);
  bool told = true;
  for (Errand& errand : errands) {
    told = told && errand.told;
    if (!errand.told) options_.loop->Spawn(RunUntilTold(std::move(errand)));
  }
  co_return told;
}

Task<bool> Batcher::Renew(std::vector<store::SharedCharge> charges, int64_t ttl_ns) {
  std::vector<Errand> errands = ErrandsOf(Errand::Kind::kRenew, std::move(charges), ttl_ns);
  co_await RunAll(errands);
  co_return std::ranges::all_of(errands, &Errand::all_done);
}

Task<bool> Batcher::Reset(std::vector<store::SharedCharge> charges) {
  std::vector<Errand> errands = ErrandsOf(Errand::Kind::kReset, std::move(charges), 0);
  co_await RunAll(errands);
  co_return std::ranges::all_of(errands, &Errand::told);
}

}  // namespace weir::shared_store
