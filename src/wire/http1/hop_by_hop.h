// Which header fields stop at this hop (RFC 9110, 7.6.1): Connection and those it names,
// Keep-Alive, Proxy-*, TE, Trailer, Transfer-Encoding, Upgrade.
//
//   http1::HopByHop hop(head.headers);
//   for (const auto& field : head.headers)
//     if (!hop.Stops(field)) http1::AppendField(out, field.name, field.value);
//
// The sender of a request cannot use Connection to strip what matters end to end: fields that
// frame, route, authenticate or name the client (Host, Content-Length, Authorization,
// X-Forwarded-For, ...) are forwarded although it names them. Framing fields that the forwarder
// writes itself (Content-Length) are its own business. Thread safety: plain value. Views into the
// headers that it was made from.
#pragma once

#include "wire/http1/fields.h"

namespace weir::http1 {

class HopByHop {
 public:
  explicit HopByHop(const FixedHeaders& headers);
  // True when the field must not be forwarded. No allocation.
  bool Stops(const HeaderField& field) const;

 private:
  const FixedHeaders& headers_;
  bool names_others_ = false;  // A Connection field names more than close, keep-alive and upgrade.
};

}  // namespace weir::http1
