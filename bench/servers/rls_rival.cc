// The rate limit service as grpc++ serves it by callbacks: the same messages, the same decision (a
// token bucket for each descriptor, under its shard's mutex). What the gRPC door is measured
// against.
//
//   rls_rival PORT
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "rls.grpc.pb.h"

namespace {

namespace pb = envoy::service::ratelimit::v3;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kUnits = 1'000'000;  // Per second; nothing is refused.
constexpr int64_t kIntervalNs = kSecondNs / kUnits;

class Buckets {
 public:
  // Units left, or -1.
  int64_t Take(const std::string& key, int64_t hits, int64_t now_ns) {
    Shard& shard = shards_[std::hash<std::string>{}(key) % shards_.size()];
    const std::lock_guard lock(shard.mutex);
    int64_t& stored = shard.full_at_ns[key];
    const int64_t full_at_ns = std::max(stored, now_ns) + hits * kIntervalNs;
    if (full_at_ns - now_ns > kSecondNs) return -1;
    stored = full_at_ns;
    return kUnits - (full_at_ns - now_ns) / kIntervalNs;
  }

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string, int64_t> full_at_ns;
  };
  std::array<Shard, 64> shards_;
};

class Service final : public pb::RateLimitService::CallbackService {
  grpc::ServerUnaryReactor* ShouldRateLimit(grpc::CallbackServerContext* context,
                                            const pb::RateLimitRequest* request,
                                            pb::RateLimitResponse* response) override {
    const int64_t now_ns = std::chrono::steady_clock::now().time_since_epoch().count();
    pb::RateLimitResponse::Code overall = pb::RateLimitResponse::OK;
    for (const pb::RateLimitDescriptor& descriptor : request->descriptors()) {
      std::string key = request->domain();
      for (const auto& entry : descriptor.entries()) {
        key += '_';
        key += entry.key();
        key += '_';
        key += entry.value();
      }
      const int64_t left =
          buckets_.Take(key, std::max<uint32_t>(request->hits_addend(), 1), now_ns);
      pb::RateLimitResponse::DescriptorStatus* const status = response->add_statuses();
      status->set_code(left < 0 ? pb::RateLimitResponse::OVER_LIMIT : pb::RateLimitResponse::OK);
      if (left < 0) overall = pb::RateLimitResponse::OVER_LIMIT;
      status->mutable_current_limit()->set_requests_per_unit(kUnits);
      status->mutable_current_limit()->set_unit(pb::SECOND);
      status->set_limit_remaining(static_cast<uint32_t>(std::max<int64_t>(left, 0)));
      status->mutable_duration_until_reset()->set_seconds(1);
    }
    response->set_overall_code(overall);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  Buckets buckets_;
};

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  Service service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::string(words[1]), grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  builder.BuildAndStart()->Wait();
}
