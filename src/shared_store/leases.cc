#include "shared_store/leases.h"

#include <algorithm>
#include <random>
#include <utility>

#include "core/int128.h"
#include "shared_store/lease_requests.h"

namespace weir::shared_store {
namespace {

using store::lease::GiveBackRequest;
using store::lease::LeaseBook;
using store::lease::LeasedMeter;
using store::lease::TakeReply;

// The whole table is seen about three times in a term.
constexpr int64_t kSweepNs = 10'000'000;
constexpr size_t kSweptEntries = 256;
constexpr int kSweepsForNames = 64;

// A settle that the store was not told is told again for so long, with these pauses.
constexpr int64_t kRetryNs = 30'000'000'000;
constexpr int64_t kPauseMinNs = 100'000'000;
constexpr int64_t kPauseMaxNs = 2'000'000'000;

// As the store wants it: random, from 1 to 2^53 - 1.
uint64_t RandomHolder() {
  std::random_device device;
  const uint64_t drawn = (uint64_t{device()} << 32 | device()) >> 11;
  return std::max<uint64_t>(drawn, 1);
}

constexpr int64_t kSoonNs = 1'000'000;
constexpr int64_t kGivenBackNs = 1'000'000'000;

int64_t WaitNs(int64_t us) { return us == core::kNever ? core::kNever : us * 1000; }

// Until a bucket that lacks so many units is full; of a window, until it ends.
int64_t ResetNs(const LeasedMeter& leased, int64_t remaining, int64_t window_ns) {
  if (leased.terms.window) return window_ns;
  const int64_t missing = leased.terms.burst - remaining;
  return core::CeilDiv64(missing * leased.terms.ticks_per_unit, leased.terms.ticks_per_us) * 1000;
}

}  // namespace

Leases::Leases(Options options)
    : options_(std::move(options)),
      sender_({.loop = options_.loop,
               .batcher = options_.batcher,
               .prefix = options_.prefix,
               .timeout_ns = options_.timeout_ns}) {}

Leases::~Leases() = default;

LeaseBook& Leases::Book() {
  if (!book_) {
    LeaseBook::Options options;
    options.holder = RandomHolder();
    book_ = std::make_unique<LeaseBook>(options);
  }
  return *book_;
}

bool Leases::CanPay(const store::Charge& charge, const LeasedMeter& leased) const {
  return book_ && !leaving_ &&
         book_->CanPay(charge.key, leased.terms, charge.cost, options_.loop->now_ns());
}

LeaseBook::Answer Leases::Pay(const store::Charge& charge, const store::SharedTerms& terms,
                              store::SharedOutcome& outcome) {
  if (leaving_) return {};
  const LeasedMeter& leased = *terms.leased;
  const int64_t now_ns = options_.loop->now_ns();
  const LeaseBook::Answer paid = Book().Spend(charge.key, leased.terms, charge.cost, now_ns);
  if (paid.ask) AskForMore(charge.key, terms);
  if (!paid.spent) return paid;
  const LeaseBook::Standing standing = book_->StandingOf(charge.key, leased.terms, now_ns);
  const int64_t remaining = std::min(standing.left + standing.available, leased.terms.burst);
  outcome.known = true;
  outcome.step = {.allowed = true,
                  .remaining = remaining,
                  .reset_after_ns = ResetNs(leased, remaining, standing.reset_ns)};
  outcome.charged = charge.cost > 0;
  outcome.source = Source::kLease;
  return paid;
}

void Leases::Undo(const store::Charge& charge, const LeasedMeter& leased,
                  const LeaseBook::Answer& paid) {
  Book().Undo(charge.key, leased.terms, charge.cost, paid, options_.loop->now_ns());
}

void Leases::AskForMore(base::Key128 key, const store::SharedTerms& terms) {
  Name& name = names_[key];
  name.tag = terms.tag;
  name.leased = terms.leased;
  if (name.asking) return;
  name.asking = sender_.Send(std::make_shared<Refill>(*this, key, terms), Lane::kBackground);
  if (sweeping_) return;
  sweeping_ = true;
  options_.loop->Spawn(SweepWhileHeld());
}

bool Leases::Take(PartPtr part) {
  part->sent_ns = options_.loop->now_ns();
  return sender_.Send(std::make_shared<Decision>(*this, std::move(part)), Lane::kAwaited);
}

void Leases::Hear(base::Key128 key, const LeasedMeter& leased, const TakeReply& reply) {
  if (!book_) return;
  book_->Hear(key, leased.terms, reply.remaining, reply.reset_us * 1000, options_.loop->now_ns());
}

// What nodes hold is not in the store's answer; what this one holds it adds itself. Where there is
// room with that, the store's wait is not the true one: what came in after the question pays for
// the same call at once, and what nobody uses goes back within a second.
core::Step Leases::StepOf(const store::Charge& charge, const LeasedMeter& leased,
                          const TakeReply& reply) const {
  int64_t left = 0;
  if (book_ && !leaving_)
    left = book_->StandingOf(charge.key, leased.terms, options_.loop->now_ns()).left;
  core::Step step{.allowed = reply.allowed,
                  .remaining = std::min(reply.remaining + left, leased.terms.burst)};
  step.reset_after_ns =
      std::max(reply.reset_us * 1000, ResetNs(leased, step.remaining, reply.reset_us * 1000));
  if (!reply.allowed) {
    step.retry_after_ns = WaitNs(reply.retry_us);
    const int64_t held_ns = charge.cost <= left ? kSoonNs : kGivenBackNs;
    if (charge.cost <= step.remaining && step.retry_after_ns > held_ns)
      step.retry_after_ns = held_ns;
  }
  return step;
}

store::lease::Windows Leases::WindowsOf(const LeasedMeter& leased, base::Key128 key) const {
  return store::lease::WindowsOf(leased, key, options_.loop->wall_ns(), earlier_windows_);
}

void Leases::Ended() {
  --open_;
  if (open_ == 0 && told_ != nullptr) told_->Set();
}

// Giving back
// -------------------------------------------------------------------------------------------------

void Leases::SendBack(base::Key128 key, const GiveBackRequest& back) {
  const auto name = names_.find(key);
  if (name == names_.end() || open_ >= kOpenMax) return;  // It runs out.
  const auto [tag, leased, asking] = name->second;
  if (!asking) names_.erase(name);
  const auto request = std::make_shared<Return>(*this, key, tag, *leased, back);
  if (sender_.Send(request, Lane::kBackground)) ++open_;
}

void Leases::GiveBackAll() {
  if (!book_) return;
  book_->GiveBackAll(
      options_.loop->now_ns(),
      [this](base::Key128 key, const GiveBackRequest& back) { SendBack(key, back); });
}

Task<void> Leases::Leave(int64_t deadline_ns) {
  leaving_ = true;
  GiveBackAll();
  if (open_ == 0) co_return;
  net::Event told(*options_.loop);
  told_ = &told;
  [[maybe_unused]] const bool all = co_await told.WaitUntil(deadline_ns);
  told_ = nullptr;
}

Task<void> Leases::SweepWhileHeld() {
  for (int sweeps = 1; !names_.empty(); ++sweeps) {
    co_await options_.loop->SleepFor(kSweepNs);
    const int64_t now_ns = options_.loop->now_ns();
    book_->Sweep(now_ns, kSweptEntries,
                 [this](base::Key128 key, const GiveBackRequest& back) { SendBack(key, back); });
    if (sweeps % kSweepsForNames != 0) continue;
    std::erase_if(names_, [&](const auto& named) {
      return !named.second.asking && !book_->Holds(named.first, now_ns);
    });
  }
  sweeping_ = false;
}

// Settles and resets
// -------------------------------------------------------------------------------------------------

Task<bool> Leases::Settle(std::vector<store::SharedCharge> charges) {
  std::vector<std::shared_ptr<Correction>> corrections;
  for (const store::SharedCharge& charge : charges) {
    if (charge.actual == charge.reserved) continue;
    if (open_ >= kOpenMax) co_return false;
    const auto correction = std::make_shared<Correction>(*options_.loop, *this, charge);
    ++open_;
    if (!sender_.Send(correction, Lane::kAwaited)) correction->done.Set();
    corrections.push_back(correction);
  }
  bool all_told = true;
  for (const std::shared_ptr<Correction>& correction : corrections) {
    co_await correction->done.Wait();
    all_told = all_told && correction->told;
    if (correction->may_repeat()) {
      options_.loop->Spawn(TellAgain(correction));
    } else {
      Ended();
    }
  }
  co_return all_told;
}

Task<void> Leases::SettleLater(store::SharedCharge charge) {
  std::vector<store::SharedCharge> charges(1, charge);
  [[maybe_unused]] const bool told = co_await Settle(std::move(charges));
}

Task<void> Leases::TellAgain(std::shared_ptr<Correction> correction) {
  const int64_t until_ns = options_.loop->now_ns() + kRetryNs;
  int64_t pause_ns = kPauseMinNs;
  while (options_.loop->now_ns() + pause_ns < until_ns) {
    co_await options_.loop->SleepFor(pause_ns);
    pause_ns = std::min(pause_ns * 2, kPauseMaxNs);
    if (!correction->may_repeat()) break;  // Heard after all.
    correction->done.Reset();
    if (sender_.Send(correction, Lane::kAwaited)) co_await correction->done.Wait();
    if (!correction->may_repeat()) break;
  }
  Ended();
}

Task<bool> Leases::Reset(std::vector<store::SharedCharge> charges) {
  std::vector<std::shared_ptr<Forget>> resets;
  for (const store::SharedCharge& charge : charges) {
    resets.push_back(std::make_shared<Forget>(*options_.loop, charge));
    if (!sender_.Send(resets.back(), Lane::kAwaited)) resets.back()->done.Set();
  }
  bool told = true;
  for (const std::shared_ptr<Forget>& reset : resets) {
    co_await reset->done.Wait();
    told = told && reset->told;
    if (book_) book_->Drop(reset->key());
  }
  co_return told;
}

}  // namespace weir::shared_store
