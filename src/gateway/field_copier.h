// FieldCopier: copies header fields from a parsed head into a buffer, neighbours in one piece.
//
// Fields that stand next to each other in the head they were parsed from are copied as they came,
// with one memcpy for the whole run: proxying costs by the field otherwise. The parser has refused
// all that must not be passed on (bare CR or LF, folds, control characters), so the text between
// them is known to be `name:value CRLF`.
//
//   FieldCopier copier(out);
//   for (const http1::HeaderField& field : head.headers) Stops(field) ? copier.Skip(field) :
//   copier.Keep(field); copier.Finish();
//
// Thread safety: none; lives for one copy.
#pragma once

#include <string_view>

#include "wire/buffer.h"
#include "wire/http1/fields.h"

namespace weir::gateway {

class FieldCopier {
 public:
  explicit FieldCopier(wire::Buffer& out) : out_(out) {}

  void Keep(const http1::HeaderField& field) {
    if (run_ == nullptr) run_ = field.name.data();
    last_ = &field;
  }
  // Fields come in the order of the head.
  void Skip(const http1::HeaderField& field) {
    if (run_ != nullptr) out_.Append({run_, static_cast<size_t>(field.name.data() - run_)});
    run_ = nullptr;
  }
  // The last run ends with its last value: what follows it in the head is not known here.
  void Finish() {
    if (run_ == nullptr) return;
    out_.Append({run_, static_cast<size_t>(last_->name.data() + last_->name.size() - run_)});
    out_.Append(": ");
    out_.Append(last_->value);
    out_.Append("\r\n");
    run_ = nullptr;
  }

 private:
  wire::Buffer& out_;
  const char* run_ = nullptr;
  const http1::HeaderField* last_ = nullptr;
};

}  // namespace weir::gateway
