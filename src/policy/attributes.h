// What is known of one call (Attributes), and which names a policy knows for it (AttributeTable).
//
// A door looks names up once, when it takes a policy; per call it only stores views by index:
//
//   policy::Attributes call;
//   call.Set(policy::kClientAttribute, "jwt:alice");
//   call.Set(policy::kPathAttribute, "/v1/chat/completions");
//   int tenant = policy->attributes().Find("tenant").value();
//   call.Set(tenant, "acme");
//
// Thread safety: Attributes is a plain value of one call; an AttributeTable does not change after
// it was built. Ownership: Attributes holds views only; what they point to must outlive the
// decision.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip_text.h"
#include "weir/result.h"

namespace weir::policy {

// Indexes of the attributes that every policy knows. Custom attributes and `header.NAME`s follow.
inline constexpr int kClientAttribute = 0;
inline constexpr int kIpAttribute = 1;
inline constexpr int kMethodAttribute = 2;  // As sent: "POST".
inline constexpr int kHostAttribute = 3;    // Without a port; compared without regard to case.
inline constexpr int kPathAttribute = 4;    // The canonical path, without the query.
inline constexpr int kModelAttribute = 5;
inline constexpr int kPlanAttribute = 6;
inline constexpr int kWellKnownAttributes = 7;

// The most attributes that one policy can know; a policy that needs more is refused at load.
inline constexpr int kMaxAttributes = 32;

// What Find gives for a `header.NAME` that the policy does not use: known, and of no interest.
inline constexpr int kUnusedAttribute = -1;

// The attributes of one call: views by index and a mask of those present. No allocation.
class Attributes {
 public:
  // REQUIRES: 0 <= index < kMaxAttributes. An empty value is present; it differs from a missing
  // one.
  void Set(int index, std::string_view value) {
    values_[static_cast<size_t>(index)] = value;
    present_ |= uint32_t{1} << index;
  }

  // The address behind `ip`, for CIDR matches without parsing text. It goes beside
  // Set(kIpAttribute) and is optional: without it the text of `ip` is parsed where a limit matches
  // by range.
  void SetAddress(base::IpBits bits) {
    address_ = bits;
    has_address_ = true;
  }

  void Remove(int index) {
    values_[static_cast<size_t>(index)] = {};
    present_ &= ~(uint32_t{1} << index);
  }

  bool Has(int index) const { return (present_ >> index & 1) != 0; }

  // The value, or an empty view when it is missing.
  std::string_view Get(int index) const { return values_[static_cast<size_t>(index)]; }

  uint32_t present_mask() const { return present_; }
  const base::IpBits* address() const { return has_address_ ? &address_ : nullptr; }

 private:
  std::array<std::string_view, kMaxAttributes> values_{};
  base::IpBits address_ = 0;
  uint32_t present_ = 0;
  bool has_address_ = false;
};

// Names to indexes and back: the well-known names, then the policy's custom ones and the headers
// that it uses.
class AttributeTable {
 public:
  // A header that the policy reads: the attribute's index and the lower-case field name
  // ("x-user-id").
  struct Header {
    int index;
    std::string field_name;
  };

  AttributeTable();

  // Adds a custom attribute, or `header.NAME` (folded to lower case; adding it twice gives the same
  // index). Errors: the table is full, the name is malformed, or a custom name is already known.
  Result<int> Add(std::string_view name);

  // The index of `name`; kUnusedAttribute for a well-formed `header.NAME` that no limit uses.
  // Error kInvalidArgument naming the attribute and, where one is near, the name that was probably
  // meant. Allocates only for the error and for a header name with upper-case letters.
  Result<int> Find(std::string_view name) const;

  // REQUIRES: 0 <= index < size().
  std::string_view NameOf(int index) const { return names_[static_cast<size_t>(index)]; }
  int size() const { return static_cast<int>(names_.size()); }
  std::span<const Header> headers() const { return headers_; }

 private:
  std::vector<std::string> names_;
  std::vector<Header> headers_;
};

// The kind of key that a limit has, as the metrics show it.
enum class Layer : uint8_t { kGlobal, kIp, kClient, kEndpoint, kModel };
inline constexpr int kLayerCount = 5;

// "global", "ip", "client", "endpoint", "model".
std::string_view LayerName(Layer layer);
std::optional<Layer> ParseLayer(std::string_view name);

// The layer that a limit naming `attribute_index` has at least. method, host and path make an
// endpoint; plan, custom attributes and headers tell callers apart, as client does.
Layer LayerOf(int attribute_index);

}  // namespace weir::policy
