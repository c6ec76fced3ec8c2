// Result<T>: a value or an Error. Weir throws nothing across its interfaces: bad input, absent
// files and refused connections are values of this type. A denied call is not an error; it is a
// Decision.
//
//   weir::Result<Rate> rate = ParseRate("300/min");
//   if (!rate) return std::unexpected(rate.error());
//   Use(*rate);
//
// Thread safety: plain values.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace weir {

// What kind of failure, and so what the caller can do about it.
enum class ErrorCode {
  kInvalidArgument,  // The input is wrong whatever the state; the message names the field. Do not
                     // retry.
  kNotFound,         // The named thing (a limit, a reservation, a file) does not exist.
  kFailedPrecondition,  // Right input in the wrong state ("restart to change the listeners").
  kUnauthenticated,     // A credential is missing or not valid.
  kPermissionDenied,    // A valid credential that may not do this.
  kResourceExhausted,   // A bound of this process (connections, keys, sizes) is reached.
  kDeadlineExceeded,    // A timeout ran out. Retrying may help.
  kUnavailable,         // The other side is away. Retrying may help.
  kCancelled,           // The caller gave up.
  kInternal,            // A bug or a broken machine.
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // One sentence that a user can act on. Never holds a secret.

  friend bool operator==(const Error&, const Error&) = default;
};

template <typename T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> MakeError(ErrorCode code, std::string message) {
  return std::unexpected<Error>(Error{code, std::move(message)});
}

inline std::unexpected<Error> InvalidArgument(std::string message) {
  return MakeError(ErrorCode::kInvalidArgument, std::move(message));
}

}  // namespace weir
