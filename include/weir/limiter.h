// Limiter: rate limits inside a C++ program, without a server: the policy that `weir serve` reads,
// or rules made in code.
//
//   auto limiter = weir::Limiter::FromYaml("limits: [{name: a, per: [client], rate: 300/min}]");
//   if (!limiter) return Fail(limiter.error().message);        // FILE:LINE:COL: what is wrong
//   auto decision = (*limiter)->Check({{"client", "alice"}}, {.requests = 1});
//   if (!decision) return Fail(decision.error().message);      // An unknown attribute.
//   if (!decision->allowed) SleepFor(*decision->retry_after);  // Nothing: waiting never helps.
//
// The fastest way, for one rate over many keys (about 20 ns with the time passed in):
//
//   weir::Bucket bucket = (*limiter)->Prepare({.units = 10, .period = 1min, .burst = 10}).value();
//   if (!bucket.Allow("user:42")) Refuse();
//
// Thread safety: every method of Limiter and Bucket may be called from any number of threads at
// once. Check takes no lock: each call works in one of a fixed set of slots, of which a thread
// mostly finds its own free.
// Ownership: a Limiter owns its policy and its counters; Buckets borrow it and must not outlive it.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/decision.h"
#include "weir/limit.h"
#include "weir/result.h"

namespace weir {

// What is known of a call: "client", "ip", "method", "host", "path", "model", "plan", and those
// that the policy declares.
struct Attribute {
  std::string_view name;
  std::string_view value;
};

// How much a call takes of each unit, 0 to kMaxUnits. A limit whose unit has no cost in the call is
// only looked at.
struct Cost {
  int64_t requests = 0;
  int64_t tokens = 0;
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  int64_t usd_micros = 0;
  int64_t bytes = 0;
};

// The true cost of a reserved call. What is not given stands as reserved.
struct ActualCost {
  std::optional<int64_t> requests;
  std::optional<int64_t> tokens;
  std::optional<int64_t> input_tokens;
  std::optional<int64_t> output_tokens;
  std::optional<int64_t> usd_micros;
  std::optional<int64_t> bytes;
};

// The instant of a call. Left out, the limiter reads its clocks (50 ns).
struct Instant {
  std::chrono::nanoseconds since_start{
      0};  // Monotonic, from any instant that the program chose; at least 0.
  std::chrono::nanoseconds unix_time{0};  // For calendar windows only.
};

struct CheckOptions {
  std::optional<Instant> now;
  bool peek = false;        // `allowed` says whether the cost would pass; nothing changes.
  bool all_limits = false;  // Fills Decision::limits; allocates.
  // Above 0: the charges are held so long, to be settled or released. Parallel limits need it: they
  // are only tested without.
  std::chrono::nanoseconds reserve{0};
};

// The answer to one call. Names are views into the policy that decided: copy them if they must
// outlive a Reload.
struct Decision {
  bool allowed = true;
  Source source = Source::kMemory;
  // Until this same call would pass, 0 when it was allowed; nothing when waiting never helps.
  std::optional<std::chrono::nanoseconds> retry_after = std::chrono::nanoseconds(0);
  std::optional<LimitResult>
      binding;  // The limit that denies, or the one with the least share left. None: none applied.
  std::vector<LimitResult>
      limits;  // With CheckOptions::all_limits: each that applies, shadow ones included.
  std::string reservation;  // With CheckOptions::reserve, when allowed: for Settle and Release.
};

// A rate made ready for many keys. Copies are cheap and count together.
class Bucket {
 public:
  // Takes `cost` units from the key's quota if they are there. `cost` 0 is always allowed. Neither
  // allocates nor blocks, but for Algorithm::kSlidingWindow.
  bool Allow(std::string_view key, int64_t cost, Instant now) const;
  // The same with the time read here.
  bool Allow(std::string_view key, int64_t cost = 1) const;
  // What the key has left and how long to wait for `cost`; changes nothing. `name` is empty.
  LimitResult Peek(std::string_view key, int64_t cost, Instant now) const;

 private:
  friend class Limiter;
  struct State;
  explicit Bucket(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

class Limiter {
 public:
  // The policy from a file with its includes, or from text. ${VAR} is read from the environment.
  // Errors: kInvalidArgument with every fault found, one a line, as FILE:LINE:COL: what is wrong
  // and what is meant.
  static Result<std::unique_ptr<Limiter>> FromFile(const std::string& path);
  static Result<std::unique_ptr<Limiter>> FromYaml(std::string yaml);
  // No policy: for Prepare alone. At most `max_keys` keys are tracked; see Prepare for what happens
  // beyond.
  static Result<std::unique_ptr<Limiter>> WithoutPolicy(int64_t max_keys = 1'000'000);
  ~Limiter();
  Limiter(const Limiter&) = delete;
  Limiter& operator=(const Limiter&) = delete;

  // Decides one call: all limits that apply, all or nothing. Errors: kInvalidArgument for an
  // attribute that the policy does not know, a name given twice or a cost out of range;
  // kResourceExhausted when no reservation can be made.
  Result<Decision> Check(std::span<const Attribute> attributes, const Cost& cost = {.requests = 1},
                         const CheckOptions& options = {});
  Result<Decision> Check(std::initializer_list<Attribute> attributes,
                         const Cost& cost = {.requests = 1}, const CheckOptions& options = {}) {
    return Check(std::span<const Attribute>(attributes.begin(), attributes.size()), cost, options);
  }

  // Ends a reservation with the true cost: the difference is given back, or becomes debt that is
  // repaid by waiting. A repeat changes nothing. kNotFound: unknown or expired.
  Result<void> Settle(std::string_view reservation, const ActualCost& actual,
                      std::optional<Instant> now = {});
  // Gives everything back. As Settle otherwise.
  Result<void> Release(std::string_view reservation, std::optional<Instant> now = {});

  // A rate for many keys, outside the policy. Buckets of equal algorithms share counters by key, so
  // a changed rate carries the used units over. When all tracked keys are used up, a new key is
  // denied. kInvalidArgument names the field that is wrong; `rate.burst` is the token bucket's
  // capacity, rate.units when 0.
  Result<Bucket> Prepare(Rate rate, Algorithm algorithm = Algorithm::kTokenBucket);

  // Swaps the policy; counters whose limit kept its name stay. After an error the old one goes on.
  Result<void> Reload(std::string yaml);
  Result<void> ReloadFile(const std::string& path);

 private:
  struct Impl;
  explicit Limiter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir
