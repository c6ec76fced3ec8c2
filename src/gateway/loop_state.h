// LoopState: what all connections of one loop's gateway share: the policy in use, spare calls, the
// calls that hold parallel slots, the connections themselves.
//
// Thread safety: the loop's thread only. Ownership: shared by the Gateway and the connections that
// it serves, so that a loop that ends with calls under way takes them down in any order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "decide/engine.h"
#include "gateway/call.h"
#include "gateway/gateway.h"
#include "gateway/policy_view.h"
#include "net/event_loop.h"
#include "net/http_service.h"
#include "wire/json/model_request.h"

namespace weir::gateway {

// A connection, as far as others need to know it.
struct OpenConnection {
  net::Stream* stream = nullptr;
  bool idle = true;  // Waits for a request.
  OpenConnection* next = nullptr;
  OpenConnection* previous = nullptr;
};

class LoopState {
 public:
  // How long a parallel slot is held without a renewal: what a crash of this process costs.
  static constexpr int64_t kSlotTtlNs = 60'000'000'000;
  static constexpr int64_t kRenewNs = 15'000'000'000;

  explicit LoopState(const GatewayOptions& options);
  ~LoopState();
  LoopState(const LoopState&) = delete;
  LoopState& operator=(const LoopState&) = delete;

  decide::Worker& worker() { return *options_.worker; }
  net::EventLoop& loop() { return *options_.loop; }
  Logger* logger() { return options_.logger; }
  metrics::WeirMetrics& metrics() { return metrics_; }
  size_t shard() const { return shard_; }
  bool draining() const { return options_.drain != nullptr && options_.drain->draining; }
  core::Now Now() { return worker().engine().NowAt(loop().now_ns(), loop().wall_ns()); }

  // The running policy's view; made anew after a reload.
  const std::shared_ptr<const PolicyView>& View();

  std::unique_ptr<Call> TakeCall();
  void GiveBack(std::unique_ptr<Call> call);
  int calls() const { return calls_; }

  // While a call is held here its parallel slots are renewed. Release frees them; fine without any.
  void HoldSlots(Call& call);
  void ReleaseSlots(Call& call);

  void Register(OpenConnection& connection);
  void Unregister(OpenConnection& connection);
  void CloseIdle();
  int connections() const { return connections_count_; }

  uint64_t Random();
  // 32 hexadecimal digits, unique in practice; not a secret.
  void MakeRequestId(std::array<char, 32>& id);
  // For one body at a time, used without waiting in between.
  json::ModelRequestReader& model_reader() { return model_reader_; }

 private:
  static constexpr size_t kSpareCalls = 64;

  void RenewSlots();

  const GatewayOptions options_;
  metrics::WeirMetrics& metrics_;
  const size_t shard_;
  std::shared_ptr<const PolicyView> view_;
  std::vector<std::unique_ptr<Call>> spare_calls_;
  int calls_ = 0;
  Call* reserved_ = nullptr;
  net::Timer renewer_;
  OpenConnection* connections_ = nullptr;
  int connections_count_ = 0;
  std::array<uint64_t, 2> random_;
  json::ModelRequestReader model_reader_;
};

}  // namespace weir::gateway
