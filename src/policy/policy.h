// One validated, immutable configuration: the limits, the routes, and the settings of all doors.
//
//   auto loaded = policy::Policy::Load("weir.yaml", policy::ProcessEnv());
//   if (!loaded) for (const policy::ConfigError& error : loaded.error()) Print(ToString(error));
//   for (const policy::Limit& limit : (*loaded)->limits()) {
//     int variant = policy::SelectVariant(limit, call, policy::Missing::kEmpty);
//     if (variant >= 0) Charge(limit.variants[variant], call);
//   }
//
// Thread safety: a Policy never changes, so all threads share it. A reload swaps the shared_ptr
// whole. Ownership: limits, routes and names live as long as the Policy.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/meter.h"
#include "policy/attributes.h"
#include "policy/config.h"
#include "policy/descriptor_index.h"
#include "policy/descriptor_pattern.h"
#include "policy/matcher.h"
#include "policy/routes.h"
#include "weir/limit.h"

namespace weir::policy {

// What is wrong at one place of the configuration, and what is meant.
struct ConfigError {
  std::string file;
  int line = 0;    // From 1; 0 when the error has no place in the file.
  int column = 0;  // From 1, in bytes.
  std::string message;
  friend bool operator==(const ConfigError&, const ConfigError&) = default;
};

// "weir.yaml:12:5: unknown key `burts`; did you mean `burst`?"
std::string ToString(const ConfigError& error);

// Looks a variable up for ${VAR}; nothing when it is not set.
using Env = std::function<std::optional<std::string>(std::string_view name)>;
Env ProcessEnv();

enum class Enforce : uint8_t { kAll, kShadow, kPercent };
enum class Consistency : uint8_t { kExact, kLocal, kLeased, kLeasedFast };
// "exact", "local", "leased", "leased_fast".
std::string_view ConsistencyName(Consistency consistency);
constexpr bool IsLeased(Consistency consistency) {
  return consistency == Consistency::kLeased || consistency == Consistency::kLeasedFast;
}

// What a limit does when an attribute that its `per` or `match` names is missing from a call.
enum class Missing : uint8_t {
  kDoor,   // As the door has it: kEmpty at the gateway and ForwardAuth, kSkip on /v1/check.
  kSkip,   // The limit does not apply.
  kEmpty,  // The attribute counts as the empty value.
  kDeny,   // The call is denied, if the rest of `match` holds.
};

// What applies to the keys of a limit: the default, or one of its overrides.
struct Variant {
  bool unlimited =
      false;  // Nothing is counted; the limit never denies. `spec` is then without meaning.
  core::MeterSpec spec;  // Algorithm, rate, capacity, alignment. usd rates are in micro-dollars.
  // Names the counters of this variant: two variants (or two policies) with equal identities share
  // their counters. It is made of the limit's name and all whose change starts afresh: unit,
  // algorithm, per, period kind. The rate is no part of it, so a changed rate finds the used units.
  // An override whose `when` names attributes outside `per` (and other than plan) has an identity
  // of its own, since one key could otherwise be counted under two rates.
  std::string identity;
  std::string
      rate_text;  // As shown to people: "300/min", "50 usd/month", "parallel 10", "unlimited".
  Matcher when;   // Empty for the default.
  Place place;
};

// Overrides that fix one attribute to exact values, found by hash. Lists are ascending: first
// written wins.
struct ExactOverrides {
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  int attribute = 0;
  std::unordered_map<std::string, std::vector<int>, TextHash, std::equal_to<>> variants;
};

// A named rule. All limits that match a call apply to it; their order in the file has no meaning.
// One that binds to descriptors applies to calls by descriptors only (DescriptorIndex says which),
// the others to calls by attributes only.
struct Limit {
  std::string name;
  int index = 0;  // In Policy::limits().
  Unit unit = Unit::kRequests;
  Layer layer = Layer::kGlobal;
  Enforce enforce = Enforce::kAll;
  int enforce_percent =
      100;  // kPercent: the share of keys that is enforced, 0 .. 100; the rest is shadow.
  Consistency consistency = Consistency::kExact;
  Missing missing = Missing::kDoor;
  std::optional<OnFailure> on_failure;  // Default: the store's.
  std::vector<int> per;  // Attribute indexes in the order written; empty: one counter for all.
  Matcher match;
  std::optional<DescriptorPattern> descriptor;  // In place of `per` and `match`.
  uint32_t needed_mask = 0;                     // Attributes that `per` and `match` name.
  std::vector<Variant> variants;  // [0] is the default, then the overrides in the order written.
  std::vector<ExactOverrides> exact_overrides;
  std::vector<int> scanned_overrides;  // Variants that no hash finds, ascending.
  bool applies_at_gateway =
      true;  // False when `match` cannot hold there, as with a custom attribute's value.
  Place place;
};

// What SelectVariant says besides an index.
inline constexpr int kDoesNotApply = -1;
inline constexpr int kDeniedMissing = -2;  // `missing: deny` and an attribute is missing.

// Which variant of `limit` governs `call`: an index into limit.variants, kDoesNotApply or
// kDeniedMissing. `door` is what a missing attribute means at this door (kSkip or kEmpty); the
// limit's own `missing` goes first. Neither allocates nor blocks. Exact override values cost one
// hash; other overrides one comparison per pattern.
int SelectVariant(const Limit& limit, const Attributes& call, Missing door);

// Whether a denial of `limit` stands for this call's key; false: it is only counted, as in shadow.
// `enforce: 10%` takes a stable tenth of the keys, the same on every node and after every restart.
bool IsEnforced(const Limit& limit, const Attributes& call);
// The same for a limit that binds to descriptors, whose key is their values.
bool IsEnforced(const Limit& limit, std::span<const DescriptorEntry> entries);

class Policy {
 public:
  using LoadResult = std::expected<std::shared_ptr<const Policy>, std::vector<ConfigError>>;

  // Reads the file and all that it includes. At most kMaxErrors errors, in the order of the file.
  // Blocks on file reads.
  static LoadResult Load(const std::string& path, const Env& env);

  // As Load, with the text at hand; relative paths and includes are taken from the directory of
  // `file_name`.
  static LoadResult FromText(std::string text, const std::string& file_name, const Env& env);

  static constexpr int kMaxErrors = 20;
  static constexpr int kMaxLimits = 1000;  // By attributes: each call looks at them all.
  static constexpr int kMaxDescriptorLimits = 10'000;
  static constexpr int kMaxPer = 8;

  const Config& config() const { return config_; }
  const AttributeTable& attributes() const { return attributes_; }
  std::span<const Limit> limits() const { return limits_; }
  const RouteTable& routes() const { return routes_; }
  // Which limits apply to a descriptor, as indexes into limits().
  const DescriptorIndex& descriptors() const { return descriptors_; }

  // The limit of that name, or null.
  const Limit* FindLimit(std::string_view name) const;

  // Harmless but probably not meant: a gateway without routes, header identities without trusted
  // proxies.
  std::span<const ConfigError> warnings() const { return warnings_; }

  // Every file that was read, as opened, the main one first: what `config.watch` watches.
  std::span<const std::string> files() const { return files_; }

 private:
  friend class PolicyCompiler;
  Policy() = default;

  Config config_;
  AttributeTable attributes_;
  std::vector<Limit> limits_;
  RouteTable routes_;
  DescriptorIndex descriptors_;
  std::vector<ConfigError> warnings_;
  std::vector<std::string> files_;
};

}  // namespace weir::policy
