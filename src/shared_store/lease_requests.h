// What Leases asks of leased counters: one kind of request each. Seen by leases*.cc alone.
//
// Thread safety: one event loop's thread. Ownership: a request borrows its Leases.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "net/event.h"
#include "shared_store/leases.h"

namespace weir::shared_store {

// More units for a lease. Nobody waits for it.
class Leases::Refill final : public LeaseRequest {
 public:
  Refill(Leases& leases, base::Key128 key, const store::SharedTerms& terms)
      : LeaseRequest(terms.tag, key), leases_(leases), leased_(*terms.leased) {}
  std::optional<store::lease::LeaseItem> Encode() override;
  void OnReport(Report report, std::string_view reply) override;

 private:
  Leases& leases_;
  const store::lease::LeasedMeter& leased_;
  int64_t number_ = 0;
};

// The end of a lease. Said again, with the same number, until it is heard or has been said often
// enough: a lease that nobody ends runs out.
class Leases::Return final : public LeaseRequest, public std::enable_shared_from_this<Return> {
 public:
  Return(Leases& leases, base::Key128 key, uint64_t tag, const store::lease::LeasedMeter& leased,
         const store::lease::GiveBackRequest& back)
      : LeaseRequest(tag, key), leases_(leases), leased_(leased), back_(back) {}
  std::optional<store::lease::LeaseItem> Encode() override;
  void OnReport(Report report, std::string_view reply) override;

 private:
  static constexpr int kTries = 3;

  Leases& leases_;
  const store::lease::LeasedMeter& leased_;
  const store::lease::GiveBackRequest back_;
  int tries_ = kTries;
};

// A decision by the store, or a look.
class Leases::Decision final : public LeaseRequest, public std::enable_shared_from_this<Decision> {
 public:
  Decision(Leases& leases, PartPtr part)
      : LeaseRequest(part->tags[0], part->charges[0].key),
        leases_(leases),
        part_(std::move(part)) {}
  std::optional<store::lease::LeaseItem> Encode() override;
  void OnReport(Report report, std::string_view reply) override;

 private:
  void Fail();
  void Deliver(const store::lease::TakeReply& reply);

  Leases& leases_;
  const PartPtr part_;
  bool again_ = false;  // Asked a second time, about other windows.
};

// A refund or a debt.
class Leases::Correction final : public LeaseRequest {
 public:
  Correction(net::EventLoop& loop, Leases& leases, const store::SharedCharge& charge)
      : LeaseRequest(charge.tag, charge.key), done(loop), leases_(leases), charge_(charge) {}
  std::optional<store::lease::LeaseItem> Encode() override;
  void OnReport(Report report, std::string_view reply) override;

  // Whether it may be said again.
  bool may_repeat() const {
    return !told && (not_carried_out || charge_.actual > charge_.reserved);
  }

  net::Event done;  // A report has come.
  bool told = false;
  bool not_carried_out = true;

 private:
  Leases& leases_;
  const store::SharedCharge charge_;
};

// The end of a counter.
class Leases::Forget final : public LeaseRequest {
 public:
  Forget(net::EventLoop& loop, const store::SharedCharge& charge)
      : LeaseRequest(charge.tag, charge.key), done(loop), leased_(*charge.leased) {}
  std::optional<store::lease::LeaseItem> Encode() override;
  void OnReport(Report report, std::string_view reply) override;

  net::Event done;  // A report has come.
  bool told = false;

 private:
  const store::lease::LeasedMeter& leased_;
};

}  // namespace weir::shared_store
