#include "gateway/loop_state.h"

#include <sys/random.h>

#include <cstring>
#include <utility>

namespace weir::gateway {
namespace {

constexpr size_t kBufferBytesKept = 20 * 1024;

Task<void> SettleLater(decide::Worker& worker, decide::ReservationId id, core::Now now) {
  [[maybe_unused]] const auto settled = co_await worker.SettleShared(id, {}, now);
}

Task<void> RenewLater(decide::Worker& worker, decide::ReservationId id, core::Now now) {
  [[maybe_unused]] const bool renewed = co_await worker.RenewShared(id, LoopState::kSlotTtlNs, now);
}

}  // namespace

void Call::Reset() {
  out.ClearAndShrink(kBufferBytesKept);
  upstream_in.ClearAndShrink(kBufferBytesKept);
  limit_fields.Clear();
  body.Reset();
  view.reset();
  route = nullptr;
  upstream = nullptr;
  path = {};
  model.clear();
  model_known = false;
  trusted_peer = false;
  upgrade = false;
  identity = {};
  request_id = {};
  deadline_ns = net::kNoDeadline;
  keep_alive = true;
  answer_begun = false;
  client_gone = false;
  streaming = false;
  status = 0;
  outcome = {};
  source = Source::kMemory;
  limit.clear();
  decision.reset();
  reservation.reset();
}

LoopState::LoopState(const GatewayOptions& options)
    : options_(options),
      metrics_(options.worker->engine().metrics()),
      shard_(options.worker->shard()),
      renewer_(*options.loop, [this] { RenewSlots(); }) {
  if (getrandom(random_.data(), sizeof random_, 0) != sizeof random_) {
    random_ = {static_cast<uint64_t>(loop().now_ns()), static_cast<uint64_t>(loop().wall_ns())};
  }
  random_[0] |= 1;
}

LoopState::~LoopState() = default;

const std::shared_ptr<const PolicyView>& LoopState::View() {
  while (view_ == nullptr || view_->policy.get() != &worker().policy()) {
    std::shared_ptr<const policy::Policy> policy = worker().engine().policy();
    if (policy.get() != &worker().policy()) continue;  // A reload came in between.
    UpstreamPool::Options pool_options;
    pool_options.loop = options_.loop;
    pool_options.resolver = options_.resolver;
    pool_options.shard = shard_;
    pool_options.seed = Random();
    view_ = PolicyView::Create(std::move(policy), view_.get(), pool_options, metrics_);
  }
  return view_;
}

std::unique_ptr<Call> LoopState::TakeCall() {
  ++calls_;
  if (spare_calls_.empty()) return std::make_unique<Call>();
  std::unique_ptr<Call> call = std::move(spare_calls_.back());
  spare_calls_.pop_back();
  return call;
}

void LoopState::GiveBack(std::unique_ptr<Call> call) {
  --calls_;
  call->Reset();
  if (spare_calls_.size() < kSpareCalls) spare_calls_.push_back(std::move(call));
}

void LoopState::HoldSlots(Call& call) {
  call.previous_reserved = nullptr;
  call.next_reserved = reserved_;
  if (reserved_ != nullptr) reserved_->previous_reserved = &call;
  reserved_ = &call;
  if (!renewer_.armed()) renewer_.ArmAt(loop().now_ns() + kRenewNs);
}

void LoopState::ReleaseSlots(Call& call) {
  if (!call.reservation) return;
  (call.previous_reserved != nullptr ? call.previous_reserved->next_reserved : reserved_) =
      call.next_reserved;
  if (call.next_reserved != nullptr) call.next_reserved->previous_reserved = call.previous_reserved;
  // Costs stand as charged; only the slots come back. One that has expired is gone already.
  if (worker().waits()) {
    loop().Spawn(SettleLater(worker(), *call.reservation, Now()));
  } else {
    [[maybe_unused]] const auto settled = worker().Settle(*call.reservation, {}, Now());
  }
  call.reservation.reset();
}

void LoopState::RenewSlots() {
  for (Call* call = reserved_; call != nullptr; call = call->next_reserved) {
    if (worker().waits()) {
      loop().Spawn(RenewLater(worker(), *call->reservation, Now()));
    } else {
      worker().Renew(*call->reservation, kSlotTtlNs, Now());
    }
  }
  if (reserved_ != nullptr) renewer_.ArmAt(loop().now_ns() + kRenewNs);
}

void LoopState::Register(OpenConnection& connection) {
  connection.next = connections_;
  if (connections_ != nullptr) connections_->previous = &connection;
  connections_ = &connection;
  ++connections_count_;
}

void LoopState::Unregister(OpenConnection& connection) {
  (connection.previous != nullptr ? connection.previous->next : connections_) = connection.next;
  if (connection.next != nullptr) connection.next->previous = connection.previous;
  --connections_count_;
}

void LoopState::CloseIdle() {
  for (OpenConnection* connection = connections_; connection != nullptr;
       connection = connection->next) {
    if (connection->idle) connection->stream->Cancel();
  }
}

uint64_t LoopState::Random() {  // xorshift128+
  uint64_t x = random_[0];
  const uint64_t y = random_[1];
  random_[0] = y;
  x ^= x << 23;
  random_[1] = x ^ y ^ (x >> 17) ^ (y >> 26);
  return random_[1] + y;
}

void LoopState::MakeRequestId(std::array<char, 32>& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (size_t half = 0; half < 2; ++half) {
    uint64_t bits = Random();
    for (size_t i = 0; i < 16; ++i, bits >>= 4) id[half * 16 + i] = kDigits[bits & 15];
  }
}

}  // namespace weir::gateway
