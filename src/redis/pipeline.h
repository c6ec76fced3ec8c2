// One connection's commands and replies: takes calls from a queue, writes them one after another,
// and gives the replies, which come in the same order, to the calls. Pure: bytes in, bytes out.
//
//   pipeline.Send(waiting, 256 << 10);
//   sent = co_await stream.Write(pipeline.out());  pipeline.Wrote(sent.bytes);
//   if (auto fault = pipeline.Receive(bytes)) …                 // the stream is of no more use
//   pipeline.Fail(waiting, error);                              // the connection has ended
//
// Thread safety: the loop's thread only. Ownership: borrows the calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>

#include "redis/call.h"
#include "weir/result.h"
#include "wire/buffer.h"
#include "wire/resp/reply_parser.h"

namespace weir::redis {

class Pipeline {
 public:
  explicit Pipeline(size_t under_way_max) : under_way_max_(under_way_max) {}
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Moves calls from the front of `waiting` until `bytes_max` bytes are to be written (the last one
  // may go beyond) or under_way_max commands are under way; gives the earliest deadline of those.
  // REQUIRES: out() is empty.
  int64_t Send(CallQueue& waiting, size_t bytes_max);
  // What is to be written.
  std::string_view out() const { return out_.View(); }
  // The kernel took the first `bytes` bytes of out().
  void Wrote(size_t bytes);

  // What the server sent. Ends calls. An error: the connection is of no more use; Fail comes next.
  Result<void> Receive(std::string_view bytes);

  // The connection has ended. Calls that the kernel did not take whole go back to the front of
  // `waiting`, in order; the others end with kLost.
  void Fail(CallQueue& waiting, const Error& fault);

  // Ends every call with kCancelled.
  void Cancel();

  // Commands sent and not answered, those whose caller has given up included.
  size_t under_way() const { return under_way_.size(); }
  bool has_room() const { return under_way_.size() < under_way_max_; }
  // The earliest deadline of what is under way; INT64_MAX when nothing is. Looks at all of it.
  int64_t EarliestDeadlineNs() const;
  uint64_t replies() const { return replies_; }            // That answered a command.
  uint64_t late_replies() const { return late_replies_; }  // To calls that had given up.

 private:
  friend class Call;
  struct Place {
    Call* call = nullptr;  // Null: ASKING, or a call that has given up.
    int64_t deadline_ns = 0;
    uint64_t end = 0;  // Offset in the stream of the byte after the command.
    bool is_call = false;
    Call::OnLate on_late;
    Call::OnLateError on_late_error;
  };
  void Abandon(Call& call);  // It gives up, or has ended.
  void OnReply(resp::Value reply);

  const size_t under_way_max_;
  std::deque<Place> under_way_;
  wire::Buffer out_;
  uint64_t encoded_ = 0;  // Offsets in the stream.
  uint64_t written_ = 0;
  resp::ReplyParser parser_;
  uint64_t replies_ = 0;
  uint64_t late_replies_ = 0;
};

}  // namespace weir::redis
