#include "shared_store/lease_requests.h"

#include <algorithm>

#include "core/int128.h"

namespace weir::shared_store {
namespace {

using store::lease::Breaker;
using store::lease::Grant;
using store::lease::GrantStatus;
using store::lease::LeaseItem;
using store::lease::TakeReply;

bool IsAnswer(LeaseRequest::Report report) {
  return report == LeaseRequest::Report::kAnswered || report == LeaseRequest::Report::kLate;
}

}  // namespace

std::optional<LeaseItem> Leases::Refill::Encode() {
  if (const auto name = leases_.names_.find(key()); name != leases_.names_.end())
    name->second.asking = false;
  if (leases_.leaving_) return std::nullopt;
  const int64_t now_ns = leases_.options_.loop->now_ns();
  const auto request = leases_.Book().Ask(key(), leased_.terms, now_ns);
  if (!request) return std::nullopt;
  number_ = request->number;
  if (leases_.options_.breaker->Ask(now_ns) == Breaker::Pass::kNo) {
    leases_.Book().Failed(key(), number_, now_ns);
    return std::nullopt;
  }
  return EncodeRefill(leased_.terms, leases_.WindowsOf(leased_, key()), *request);
}

void Leases::Refill::OnReport(Report report, std::string_view reply) {
  const int64_t now_ns = leases_.options_.loop->now_ns();
  const std::optional<Grant> grant =
      IsAnswer(report) ? store::lease::DecodeGrant(reply) : std::nullopt;
  if (!grant) return leases_.Book().Failed(key(), number_, now_ns);
  if (grant->status == GrantStatus::kOtherWindow) leases_.OnOtherWindow();
  leases_.Book().Apply(key(), *grant, now_ns);
}

std::optional<LeaseItem> Leases::Return::Encode() {
  return EncodeGiveBack(leased_.terms, leases_.WindowsOf(leased_, key()), back_);
}

void Leases::Return::OnReport(Report report, std::string_view /*reply*/) {
  if (tries_ == 0) return;  // It has ended: this is an answer to an earlier try.
  tries_ = IsAnswer(report) ? 0 : tries_ - 1;
  if (tries_ > 0 && leases_.sender_.Send(shared_from_this(), Lane::kBackground)) return;
  tries_ = 0;
  leases_.Ended();
}

std::optional<LeaseItem> Leases::Decision::Encode() {
  if (part_->abandoned) return std::nullopt;
  const store::Charge& charge = part_->charges[0];
  const store::lease::Windows windows = leases_.WindowsOf(*part_->leased, charge.key);
  if (part_->mode == store::Mode::kPeek)
    return EncodePeek(part_->leased->terms, windows, charge.cost);
  return EncodeTake(part_->leased->terms, windows, charge.cost);
}

void Leases::Decision::OnReport(Report report, std::string_view reply) {
  const std::optional<TakeReply> taken =
      IsAnswer(report) ? store::lease::DecodeTake(reply) : std::nullopt;
  if (!taken) return Fail();
  if (!taken->other_window) return Deliver(*taken);
  leases_.OnOtherWindow();
  const bool ask_again = report == Report::kAnswered && !again_ && !part_->abandoned;
  again_ = true;
  if (!ask_again || !leases_.sender_.Send(shared_from_this(), Lane::kAwaited)) Fail();
}

void Leases::Decision::Fail() {
  if (part_->abandoned) return;
  part_->state = Part::State::kFailed;
  part_->done.Set();
}

void Leases::Decision::Deliver(const TakeReply& reply) {
  const store::Charge& charge = part_->charges[0];
  const bool charged = part_->mode != store::Mode::kPeek && reply.allowed && charge.cost > 0;
  if (part_->abandoned || part_->state != Part::State::kWaiting) {
    // Whoever waited has been answered otherwise.
    if (!charged) return;
    const store::SharedCharge taken{.meter = charge.meter,
                                    .key = charge.key,
                                    .tag = part_->tags[0],
                                    .receipt = reply.receipt,
                                    .reserved = charge.cost,
                                    .leased = part_->leased};
    leases_.options_.loop->Spawn(leases_.SettleLater(taken));
    return;
  }
  leases_.Hear(charge.key, *part_->leased, reply);
  store::Outcome outcome;
  outcome.step = leases_.StepOf(charge, *part_->leased, reply);
  if (part_->mode == store::Mode::kPeek && leases_.CanPay(charge, *part_->leased)) {
    outcome.step.allowed = true;
    outcome.step.retry_after_ns = 0;
  }
  outcome.receipt = reply.receipt;
  outcome.charged = charged;
  part_->outcomes.assign(1, outcome);
  part_->admitted = outcome.step.allowed || !charge.enforced;
  part_->state = Part::State::kAnswered;
  part_->done.Set();
}

std::optional<LeaseItem> Leases::Correction::Encode() {
  const store::lease::LeasedMeter& leased = *charge_.leased;
  const store::lease::Windows windows = leases_.WindowsOf(leased, key());
  const int64_t refund = charge_.reserved - charge_.actual;
  if (refund > 0) return EncodePutBack(leased.terms, windows, charge_.receipt, refund);
  return EncodePost(leased.terms, windows, -refund);
}

void Leases::Correction::OnReport(Report report, std::string_view /*reply*/) {
  told = told || IsAnswer(report);
  not_carried_out = report == Report::kNotCarriedOut;
  done.Set();
}

std::optional<LeaseItem> Leases::Forget::Encode() { return EncodeReset(leased_.terms); }

void Leases::Forget::OnReport(Report report, std::string_view /*reply*/) {
  told = told || IsAnswer(report);
  done.Set();
}

}  // namespace weir::shared_store
