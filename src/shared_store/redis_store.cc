#include "shared_store/redis_store.h"

#include <algorithm>
#include <string>
#include <utility>

namespace weir::shared_store {
namespace {

// A denial may end sooner than was said, since reservations give units back: what is learnt of one
// is kept for as long as the cache keeps those.
constexpr bool kReservations = true;

store::Outcome DeniedByCache(const store::lease::DenyCache::Denial& denial) {
  store::Outcome outcome;
  outcome.step = {.allowed = false,
                  .remaining = denial.standing.remaining,
                  .reset_after_ns = denial.standing.reset_after_ns,
                  .retry_after_ns = denial.wait_ns};
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
                                                          .timeout_ns = options_.timeout_ns})),
      leases_(std::make_unique<Leases>(Leases::Options{.loop = options_.loop,
                                                       .batcher = batcher_.get(),
                                                       .breaker = &breaker_,
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

void RedisStore::OnPolicy() {
  denials_.DropAll();
  leases_->GiveBackAll();
}

Task<void> RedisStore::GiveBackLeases() {
  return leases_->Leave(options_.loop->now_ns() + kGiveBackNs);
}

RedisStore::Split RedisStore::SplitOf(std::span<const SharedTerms> terms,
                                      std::span<SharedOutcome> outcomes) {
  Split split;
  for (size_t i = 0; i < terms.size(); ++i) {
    outcomes[i] = {};
    outcomes[i].known = false;
    if (terms[i].consistency == store::Consistency::kLocal) {
      split.local.push_back(i);
    } else {
      (terms[i].leased != nullptr ? split.leased : split.asked).push_back(i);
    }
  }
  return split;
}

Task<bool> RedisStore::Decide(std::span<const Charge> charges, std::span<const SharedTerms> terms,
                              std::span<SharedOutcome> outcomes, core::Now now, Mode mode) {
  Split split = SplitOf(terms, outcomes);
  bool denied = false;
  for (const size_t i : split.asked) denied = DeniedAlready(charges[i], outcomes[i]) || denied;
  if (denied || !DecideLocal(charges, split.local, outcomes, now, mode)) co_return false;
  std::vector<Payment> payments;
  bool admitted = PayLeases(charges, terms, outcomes, mode, split, payments);
  if (admitted && !split.asked.empty()) {
    std::vector<PartPtr> parts = PartsOf(charges, terms, split.asked, mode);
    const int64_t now_ns = options_.loop->now_ns();
    const bool may_ask = breaker_.Ask(now_ns) != store::lease::Breaker::Pass::kNo;
    for (const PartPtr& part : parts) {
      if (!may_ask || !Submit(part)) part->state = Part::State::kFailed;
    }
    co_await Await(parts, now_ns + options_.timeout_ns);
    admitted = Conclude(parts, charges, terms, outcomes, now, mode);
  }
  if (!admitted && mode != Mode::kPeek) GiveBack(charges, terms, outcomes, payments, now);
  co_return admitted;
}

std::optional<bool> RedisStore::DecideNow(std::span<const Charge> charges,
                                          std::span<const SharedTerms> terms,
                                          std::span<SharedOutcome> outcomes, core::Now now,
                                          Mode mode) {
  if (mode == Mode::kPeek) return std::nullopt;
  bool denied = false;
  bool here = true;
  std::vector<size_t> local;
  for (size_t i = 0; i < charges.size(); ++i) {
    outcomes[i] = {};
    outcomes[i].known = false;
    if (terms[i].consistency == store::Consistency::kLocal) {
      local.push_back(i);
    } else if (!CanPay(charges[i], terms[i])) {
      here = false;
      denied = DeniedAlready(charges[i], outcomes[i]) || denied;
    }
  }
  if (!denied && !here) return std::nullopt;
  if (!denied && !DecideLocal(charges, local, outcomes, now, mode)) return false;
  for (size_t i = 0; i < charges.size(); ++i) {
    // A denied call pays nothing, and still counts as use, so that a lease comes for the next ones.
    const bool counts = denied ? outcomes[i].known && !terms[i].settles : !outcomes[i].known;
    if (terms[i].leased != nullptr && counts) leases_->Pay(charges[i], terms[i], outcomes[i]);
  }
  return !denied;
}

bool RedisStore::CanPay(const Charge& charge, const SharedTerms& terms) const {
  return terms.leased != nullptr && !terms.settles && leases_->CanPay(charge, *terms.leased);
}

// A limit that is known to deny the call spares it the way to the store.
bool RedisStore::DeniedAlready(const Charge& charge, SharedOutcome& outcome) const {
  if (!charge.enforced || charge.cost == 0) return false;
  const auto denial =
      denials_.Find(charge.key, charge.cost, options_.loop->now_ns(), charge.meter->id());
  // A larger cost is denied as well, and only the store knows for how long.
  if (!denial || denial->cost != charge.cost) return false;
  Put(DeniedByCache(*denial), Source::kDenyCache, outcome);
  return true;
}

// What leases pay; the store is asked for the rest, unless that is known to be denied.
bool RedisStore::PayLeases(std::span<const Charge> charges, std::span<const SharedTerms> terms,
                           std::span<SharedOutcome> outcomes, Mode mode, Split& split,
                           std::vector<Payment>& payments) {
  bool denied = false;
  for (const size_t i : split.leased) {
    if (mode != Mode::kPeek && !terms[i].settles) {
      const store::lease::LeaseBook::Answer paid = leases_->Pay(charges[i], terms[i], outcomes[i]);
      if (paid.spent) {
        payments.push_back({i, paid});
        continue;
      }
    }
    const bool peeks_at_lease = mode == Mode::kPeek && CanPay(charges[i], terms[i]);
    if (!peeks_at_lease && DeniedAlready(charges[i], outcomes[i])) {
      denied = true;
    } else {
      split.asked.push_back(i);
    }
  }
  return !denied;
}

bool RedisStore::Submit(const PartPtr& part) {
  return part->leased != nullptr ? leases_->Take(part) : batcher_->Submit(part);
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
                                         std::span<const size_t> asked, Mode mode) {
  std::vector<PartPtr> parts;
  for (const size_t i : asked) {
    const uint16_t group = batcher_->GroupOf(terms[i].tag);
    auto part = std::ranges::find_if(parts, [&](const PartPtr& it) {
      return it->group == group && it->leased == nullptr && terms[i].leased == nullptr;
    });
    if (part == parts.end()) {
      part = parts.insert(parts.end(), std::make_shared<Part>(*options_.loop));
      (*part)->group = group;
      (*part)->leased = terms[i].leased;
      (*part)->mode = mode;
    }
    (*part)->charges.push_back(charges[i]);
    (*part)->tags.push_back(terms[i].tag);
    (*part)->of.push_back(i);
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
    denials_.Put(charge.key, charge.cost, part.sent_ns, step.retry_after_ns, kReservations,
                 {step.remaining, step.reset_after_ns, charge.meter->id()});
  }
}

}  // namespace weir::shared_store
