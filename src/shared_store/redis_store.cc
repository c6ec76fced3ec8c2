#include "shared_store/redis_store.h"

#include <algorithm>
#include <string>
#include <utility>

namespace weir::shared_store {
namespace {

// A denial may end sooner than was said, since reservations give units back: what is learnt of one
// is kept for as long as the cache keeps those.
constexpr bool kReservations = true;

store::Outcome DeniedByCache(int64_t retry_after_ns) {
  store::Outcome outcome;
  outcome.step = {.allowed = false,
                  .remaining = 0,
                  .reset_after_ns = retry_after_ns,
                  .retry_after_ns = retry_after_ns};
  return outcome;
}

void Put(const store::Outcome& from, Source source, SharedOutcome& to) {
  static_cast<store::Outcome&>(to) = from;
  to.source = source;
  to.known = true;
}

template <typename T>
std::vector<T> Gather(std::span<const T> all, std::span<const size_t> which) {
  std::vector<T> some;
  some.reserve(which.size());
  for (const size_t i : which) some.push_back(all[i]);
  return some;
}

}  // namespace

RedisStore::RedisStore(RedisStoreOptions options)
    : options_(std::move(options)),
      client_(redis::Client::Create(*options_.loop, *options_.resolver, options_.client)),
      breaker_(options_.breaker),
      denials_({}),
      fallback_(*options_.memory, options_.node->nodes),
      batcher_(std::make_unique<Batcher>(Batcher::Options{.loop = options_.loop,
                                                          .client = client_.get(),
                                                          .breaker = &breaker_,
                                                          .metrics = options_.metrics,
                                                          .shard = options_.shard,
                                                          .prefix = options_.prefix,
                                                          .timeout_ns = options_.timeout_ns})) {
  if (!options_.counts_nodes) return;
  nodes_ = std::make_unique<NodeCounter>(NodeCounter::Options{.loop = options_.loop,
                                                              .client = client_.get(),
                                                              .node = options_.node,
                                                              .prefix = options_.prefix});
  nodes_->Start();
}

RedisStore::~RedisStore() = default;

void RedisStore::LeaveNodes() {
  if (nodes_) nodes_->Leave();
}

void RedisStore::Disconnect() {
  nodes_.reset();
  client_.reset();
}

redis::Client::Stats RedisStore::stats() const {
  return client_ ? client_->stats() : redis::Client::Stats{};
}

Task<bool> RedisStore::Decide(std::span<const Charge> charges, std::span<const SharedTerms> terms,
                              std::span<SharedOutcome> outcomes, core::Now now, Mode mode) {
  Split split;
  for (size_t i = 0; i < charges.size(); ++i) {
    outcomes[i] = {};
    outcomes[i].known = false;
    const bool local = terms[i].consistency == store::Consistency::kLocal;
    (local ? split.local : split.shared).push_back(i);
  }
  if (DeniedAlready(charges, split.shared, outcomes)) co_return false;
  if (!DecideLocal(charges, split.local, outcomes, now, mode)) co_return false;
  if (split.shared.empty()) co_return true;

  std::vector<PartPtr> parts = PartsOf(charges, terms, split.shared, mode);
  const int64_t now_ns = options_.loop->now_ns();
  const bool may_ask = breaker_.Ask(now_ns) != store::lease::Breaker::Pass::kNo;
  for (const PartPtr& part : parts) {
    if (!may_ask || !batcher_->Submit(part)) part->state = Part::State::kFailed;
  }
  co_await Await(parts, now_ns + options_.timeout_ns);
  const bool admitted = Conclude(parts, charges, terms, outcomes, now, mode);
  if (!admitted && mode != Mode::kPeek) GiveBack(charges, terms, outcomes, now);
  co_return admitted;
}

// A limit that is known to deny the call spares it the way to the store.
bool RedisStore::DeniedAlready(std::span<const Charge> charges, std::span<const size_t> shared,
                               std::span<SharedOutcome> outcomes) const {
  bool denied = false;
  for (const size_t i : shared) {
    const Charge& charge = charges[i];
    if (!charge.enforced || charge.cost == 0) continue;
    const auto denial = denials_.Find(charge.key, charge.cost, options_.loop->now_ns());
    // A larger cost is denied as well, and only the store knows for how long.
    if (!denial || denial->cost != charge.cost) continue;
    Put(DeniedByCache(denial->wait_ns), Source::kDenyCache, outcomes[i]);
    denied = true;
  }
  return denied;
}

bool RedisStore::DecideLocal(std::span<const Charge> charges, std::span<const size_t> which,
                             std::span<SharedOutcome> outcomes, core::Now now, Mode mode) {
  if (which.empty()) return true;
  const std::vector<Charge> local = Gather(charges, which);
  std::vector<store::Outcome> answers(local.size());
  const bool admitted = options_.memory->Decide(local, answers, now, mode);
  for (size_t n = 0; n < which.size(); ++n) Put(answers[n], Source::kMemory, outcomes[which[n]]);
  return admitted;
}

std::vector<PartPtr> RedisStore::PartsOf(std::span<const Charge> charges,
                                         std::span<const SharedTerms> terms,
                                         std::span<const size_t> shared, Mode mode) {
  std::vector<PartPtr> parts;
  std::vector<uint16_t> groups;
  for (const size_t i : shared) {
    const uint16_t group = batcher_->GroupOf(terms[i].tag);
    const auto found = std::ranges::find(groups, group);
    const auto at = static_cast<size_t>(found - groups.begin());
    if (found == groups.end()) {
      groups.push_back(group);
      parts.push_back(std::make_shared<Part>(*options_.loop));
      parts.back()->group = group;
      parts.back()->mode = mode;
    }
    parts[at]->charges.push_back(charges[i]);
    parts[at]->tags.push_back(terms[i].tag);
    parts[at]->of.push_back(i);
  }
  return parts;
}

Task<void> RedisStore::Await(std::vector<PartPtr>& parts, int64_t deadline_ns) {
  for (const PartPtr& part : parts) {
    if (part->state != Part::State::kWaiting) continue;
    [[maybe_unused]] const bool in_time = co_await part->done.WaitUntil(deadline_ns);
  }
}

// Takes the answers over, and decides here what the store did not.
bool RedisStore::Conclude(std::vector<PartPtr>& parts, std::span<const Charge> charges,
                          std::span<const SharedTerms> terms, std::span<SharedOutcome> outcomes,
                          core::Now now, Mode mode) {
  bool admitted = true;
  std::vector<size_t> missing;
  for (const PartPtr& part : parts) {
    if (part->state != Part::State::kAnswered) {
      part->abandoned = true;
      missing.insert(missing.end(), part->of.begin(), part->of.end());
      continue;
    }
    admitted = admitted && part->admitted;
    for (size_t n = 0; n < part->of.size(); ++n)
      Put(part->outcomes[n], Source::kRedis, outcomes[part->of[n]]);
    LearnDenials(*part);
  }
  if (missing.empty()) return admitted;
  const std::vector<Charge> left = Gather(charges, missing);
  const std::vector<SharedTerms> left_terms = Gather(terms, missing);
  std::vector<SharedOutcome> answers(left.size());
  const bool passed =
      fallback_.Decide(left, left_terms, answers, now, admitted ? mode : Mode::kPeek);
  for (size_t n = 0; n < missing.size(); ++n) outcomes[missing[n]] = answers[n];
  return admitted && passed;
}

void RedisStore::LearnDenials(const Part& part) {
  for (size_t n = 0; n < part.charges.size(); ++n) {
    const Charge& charge = part.charges[n];
    const core::Step& step = part.outcomes[n].step;
    if (step.allowed || charge.cost == 0 || charge.meter->form() == core::Form::kParallel) continue;
    denials_.Put(charge.key, charge.cost, part.sent_ns, step.retry_after_ns, kReservations);
  }
}

// The call is denied after all: what it was charged comes back.
void RedisStore::GiveBack(std::span<const Charge> charges, std::span<const SharedTerms> terms,
                          std::span<SharedOutcome> outcomes, core::Now now) {
  std::vector<SharedCharge> charged;
  for (size_t i = 0; i < charges.size(); ++i) {
    SharedOutcome& outcome = outcomes[i];
    if (!outcome.known || !outcome.charged) continue;
    charged.push_back({.meter = charges[i].meter,
                       .key = charges[i].key,
                       .tag = terms[i].tag,
                       .receipt = outcome.receipt,
                       .source = outcome.source,
                       .reserved = charges[i].cost});
    outcome.charged = false;
    outcome.step.remaining += charges[i].cost;
  }
  if (!charged.empty()) options_.loop->Spawn(SettleLater(std::move(charged), now));
}

Task<void> RedisStore::SettleLater(std::vector<SharedCharge> charges, core::Now now) {
  [[maybe_unused]] const bool told = co_await Settle(charges, now);
}

Task<bool> RedisStore::Settle(std::span<const SharedCharge> charges, core::Now now) {
  std::vector<SharedCharge> shared;
  for (const SharedCharge& charge : charges) {
    switch (charge.source) {
      case Source::kMemory:
        options_.memory->Settle(*charge.meter, charge.key, charge.receipt, charge.reserved,
                                charge.actual, now);
        break;
      case Source::kFallback:
        fallback_.Settle(charge, now);
        break;
      default:
        if (charge.actual < charge.reserved) denials_.Drop(charge.key);
        shared.push_back(charge);
    }
  }
  if (shared.empty()) co_return true;
  co_return co_await batcher_->Settle(std::move(shared));
}

Task<bool> RedisStore::Renew(std::span<const SharedCharge> charges, int64_t ttl_ns, core::Now now) {
  bool renewed = true;
  std::vector<SharedCharge> shared;
  for (const SharedCharge& charge : charges) {
    switch (charge.source) {
      case Source::kMemory:
        renewed = options_.memory->Renew(*charge.meter, charge.key, charge.receipt, ttl_ns, now) &&
                  renewed;
        break;
      case Source::kFallback:
        renewed = fallback_.Renew(charge, ttl_ns, now) && renewed;
        break;
      default:
        shared.push_back(charge);
    }
  }
  if (shared.empty()) co_return renewed;
  const bool told = co_await batcher_->Renew(std::move(shared), ttl_ns);
  co_return told&& renewed;
}

Task<bool> RedisStore::Reset(std::span<const SharedCharge> charges) {
  std::vector<SharedCharge> shared(charges.begin(), charges.end());
  for (const SharedCharge& charge : charges) {
    options_.memory->Reset(*charge.meter, charge.key);
    denials_.Drop(charge.key);
  }
  co_return co_await batcher_->Reset(std::move(shared));
}

}  // namespace weir::shared_store
