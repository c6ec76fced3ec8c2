#include "wire/http2/server_session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "wire/http2/session_memory.h"

namespace weir::http2 {
namespace {

constexpr size_t kHeaderOverheadBytes = 32;
constexpr size_t kHeadersMax = 256;          // Of one head that is sent.
constexpr int64_t kWindowUpdatesOfData = 2;  // The stream's and the connection's.

std::string_view Text(const uint8_t* bytes, size_t length) {
  return {reinterpret_cast<const char*>(bytes), length};
}

uint8_t* Bytes(std::string_view text) {
  return const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(text.data()));
}

bool EndsStream(const nghttp2_frame_hd& frame) {
  return (frame.flags & NGHTTP2_FLAG_END_STREAM) != 0;
}

// Frames that cost work and need carry nothing. (Those of unknown types are skipped unseen: they
// cost less than their bytes.)
bool IsIdle(const nghttp2_frame_hd& frame) {
  switch (frame.type) {
    case NGHTTP2_HEADERS:
      return false;
    case NGHTTP2_DATA:
      return frame.length == 0 && !EndsStream(frame);
    default:
      return true;
  }
}

// The fields as libnghttp2 wants them.
class NameValues {
 public:
  explicit NameValues(std::span<const Header> headers)
      : count_(std::min(headers.size(), kHeadersMax)) {
    for (size_t i = 0; i < count_; ++i) {
      const Header& header = headers[i];
      constexpr uint8_t kNoCopy = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
      const uint8_t flags = header.lasting ? kNoCopy : uint8_t{NGHTTP2_NV_FLAG_NONE};
      pairs_[i] = {Bytes(header.name), Bytes(header.value), header.name.size(), header.value.size(),
                   flags};
    }
  }
  const nghttp2_nv* data() const { return pairs_.data(); }
  size_t size() const { return count_; }

 private:
  std::array<nghttp2_nv, kHeadersMax> pairs_;
  size_t count_;
};

// Of what only fails without memory, or for a stream that is gone.
void Check(int code) {
  if (code == NGHTTP2_ERR_NOMEM) std::abort();
}

}  // namespace

struct ServerSession::Slot {
  ServerStream* stream = nullptr;
  size_t unconsumed_bytes = 0;  // Given to OnData and not to Consume.
  Slot* next = nullptr;
  Slot* previous = nullptr;
};

struct ServerSession::Callbacks {
  static ServerSession& Self(void* user) { return *static_cast<ServerSession*>(user); }

  static int OnBeginFrame(nghttp2_session*, const nghttp2_frame_hd* frame, void* user) {
    if (IsIdle(*frame)) Self(user).PayIdleFrame();
    if (frame->type == NGHTTP2_HEADERS) Self(user).CheckStreamId(frame->stream_id);
    return 0;
  }

  static int OnBeginHeaders(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    ServerSession& self = Self(user);
    self.head_of_ = frame->hd.stream_id;
    self.header_bytes_ = 0;
    self.too_large_ = false;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    ServerStream* const stream =
        self.broken_ ? nullptr : self.acceptor_.OnStream(frame->hd.stream_id);
    if (stream == nullptr) {
      self.Reset(frame->hd.stream_id, kRefusedStream);
      return 0;
    }
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, self.TakeSlot(stream));
    return 0;
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_bytes, const uint8_t* value, size_t value_bytes, uint8_t,
                      void* user) {
    ServerSession& self = Self(user);
    self.header_bytes_ += name_bytes + value_bytes + kHeaderOverheadBytes;
    if (self.header_bytes_ > self.limits_.header_list_bytes_max) {
      self.too_large_ = true;
      return 0;
    }
    if (Slot* const slot = self.SlotOf(frame->hd.stream_id)) {
      slot->stream->OnHeader(Text(name, name_bytes), Text(value, value_bytes));
    }
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    ServerSession& self = Self(user);
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS) self.head_of_ = 0;
    Slot* const slot = self.SlotOf(frame->hd.stream_id);
    if (slot == nullptr) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      ++self.requests_;
      slot->stream->OnHead(EndsStream(frame->hd), self.too_large_);
    } else if (EndsStream(frame->hd)) {
      slot->stream->OnEnd();
    }
    return 0;
  }

  static int OnData(nghttp2_session* session, uint8_t, int32_t stream_id, const uint8_t* data,
                    size_t bytes, void* user) {
    Slot* const slot = Self(user).SlotOf(stream_id);
    if (slot == nullptr) {
      Check(nghttp2_session_consume_connection(session, bytes));
      return 0;
    }
    slot->unconsumed_bytes += bytes;
    slot->stream->OnData(Text(data, bytes));
    return 0;
  }

  static int OnClose(nghttp2_session*, int32_t stream_id, uint32_t error_code, void* user) {
    ServerSession& self = Self(user);
    if (self.head_of_ == stream_id) self.head_of_ = 0;
    if (Slot* const slot = self.SlotOf(stream_id)) self.Close(slot, error_code);
    return 0;
  }

  static int OnSent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    ServerSession& self = Self(user);
    const nghttp2_frame_hd& sent = frame->hd;
    // A peer that makes the server reset its streams is no better than one that resets them.
    if (sent.type == NGHTTP2_RST_STREAM) self.PayIdleFrame();
    if (sent.type != NGHTTP2_HEADERS && sent.type != NGHTTP2_DATA) return 0;
    // Many clients open both windows again for each piece of a body that they take.
    if (sent.type == NGHTTP2_DATA && sent.length > 0) self.EarnIdleFrames(kWindowUpdatesOfData);
    if (!EndsStream(sent)) return 0;
    self.EarnIdleFrames(self.limits_.idle_frames_per_request);
    // The answer is complete and the request is not: its rest is not wanted (RFC 9113, 8.1).
    if (nghttp2_session_get_stream_remote_close(session, sent.stream_id) == 0) {
      self.Reset(sent.stream_id, kNoError);
    }
    return 0;
  }

  static ssize_t OnRead(nghttp2_session*, int32_t stream_id, uint8_t* room, size_t room_bytes,
                        uint32_t* flags, nghttp2_data_source*, void* user) {
    Slot* const slot = Self(user).SlotOf(stream_id);
    if (slot == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const Piece piece = slot->stream->Read({reinterpret_cast<char*>(room), room_bytes});
    switch (piece.then) {
      case Piece::Then::kMore:
        break;
      case Piece::Then::kLater:
        if (piece.bytes == 0) return NGHTTP2_ERR_DEFERRED;
        break;
      case Piece::Then::kEnd:
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        break;
      case Piece::Then::kTrailers:
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        break;
      case Piece::Then::kAbort:
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // RST_STREAM with INTERNAL_ERROR.
    }
    return static_cast<ssize_t>(piece.bytes);
  }

  // Made once for all sessions.
  static nghttp2_session_callbacks* Table() {
    static nghttp2_session_callbacks* const table = [] {
      nghttp2_session_callbacks* made = nullptr;
      Check(nghttp2_session_callbacks_new(&made));
      nghttp2_session_callbacks_set_on_begin_frame_callback(made, OnBeginFrame);
      nghttp2_session_callbacks_set_on_begin_headers_callback(made, OnBeginHeaders);
      nghttp2_session_callbacks_set_on_header_callback(made, OnHeader);
      nghttp2_session_callbacks_set_on_frame_recv_callback(made, OnFrame);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, OnData);
      nghttp2_session_callbacks_set_on_stream_close_callback(made, OnClose);
      nghttp2_session_callbacks_set_on_frame_send_callback(made, OnSent);
      return made;
    }();
    return table;
  }

  static nghttp2_option* Options() {
    static nghttp2_option* const options = [] {
      nghttp2_option* made = nullptr;
      Check(nghttp2_option_new(&made));
      nghttp2_option_set_no_auto_window_update(made, 1);
      // Resets are counted here, by the time that is passed in.
      nghttp2_option_set_stream_reset_rate_limit(made, UINT32_MAX, UINT32_MAX);
      return made;
    }();
    return options;
  }
};

ServerSession::ServerSession(const SessionLimits& limits, Acceptor& acceptor)
    : limits_(limits), acceptor_(acceptor), idle_frames_left_(limits.idle_frames_burst) {
  Check(nghttp2_session_server_new3(&session_, Callbacks::Table(), this, Callbacks::Options(),
                                    SessionMemory()));
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.concurrent_streams_max},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<uint32_t>(limits.stream_window_bytes)},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(limits.header_list_bytes_max)},
  };
  Check(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings)));
  Check(nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                              limits.connection_window_bytes));
}

ServerSession::~ServerSession() {
  while (open_ != nullptr) Close(open_, kCancel);
  nghttp2_session_del(session_);
  while (free_ != nullptr) delete std::exchange(free_, free_->next);
}

bool ServerSession::Feed(std::string_view bytes, int64_t now_ns) {
  if (broken_) return false;
  Refill(now_ns);
  const ssize_t taken = nghttp2_session_mem_recv(session_, Bytes(bytes), bytes.size());
  if (taken < 0) {
    const bool flooded = taken == NGHTTP2_ERR_FLOODED;
    Check(static_cast<int>(taken));
    Break(flooded ? kEnhanceYourCalm : kProtocolError, nghttp2_strerror(static_cast<int>(taken)));
  }
  return !broken_;
}

bool ServerSession::Drain(wire::Buffer& out, size_t bytes_max) {
  while (out.size() < bytes_max) {
    const uint8_t* frame = nullptr;
    const ssize_t bytes = nghttp2_session_mem_send(session_, &frame);
    if (bytes < 0) {
      Check(static_cast<int>(bytes));
      broken_ = true;
      return false;
    }
    if (bytes == 0) return false;
    out.Append(Text(frame, static_cast<size_t>(bytes)));
  }
  return true;
}

void ServerSession::Respond(int32_t stream_id, std::span<const Header> head, Body body) {
  const NameValues fields(head);
  const nghttp2_data_provider provider{.source = {}, .read_callback = Callbacks::OnRead};
  Check(nghttp2_submit_response(session_, stream_id, fields.data(), fields.size(),
                                body == Body::kFollows ? &provider : nullptr));
}

void ServerSession::RespondInterim(int32_t stream_id, std::span<const Header> head) {
  const NameValues fields(head);
  Check(nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, stream_id, nullptr, fields.data(),
                               fields.size(), nullptr));
}

void ServerSession::SendTrailers(int32_t stream_id, std::span<const Header> trailers) {
  const NameValues fields(trailers);
  Check(nghttp2_submit_trailer(session_, stream_id, fields.data(), fields.size()));
}

void ServerSession::Resume(int32_t stream_id) {
  Check(nghttp2_session_resume_data(session_, stream_id));
}

void ServerSession::Reset(int32_t stream_id, uint32_t error_code) {
  Check(nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream_id, error_code));
}

void ServerSession::Consume(int32_t stream_id, size_t bytes) {
  Slot* const slot = SlotOf(stream_id);
  if (slot == nullptr) return;  // Its rest was consumed when it closed.
  const size_t counted = std::min(bytes, slot->unconsumed_bytes);
  slot->unconsumed_bytes -= counted;
  Check(nghttp2_session_consume(session_, stream_id, counted));
}

void ServerSession::ShutdownNotice() { Check(nghttp2_submit_shutdown_notice(session_)); }

void ServerSession::GoAway(uint32_t error_code) {
  Check(nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(session_), error_code,
                              nullptr, 0));
}

bool ServerSession::finished() const {
  if (nghttp2_session_want_write(session_) != 0) return false;
  return broken_ || nghttp2_session_want_read(session_) == 0;
}

ServerSession::Slot* ServerSession::SlotOf(int32_t stream_id) const {
  return static_cast<Slot*>(nghttp2_session_get_stream_user_data(session_, stream_id));
}

ServerSession::Slot* ServerSession::TakeSlot(ServerStream* stream) {
  Slot* slot = free_;
  if (slot != nullptr) {
    free_ = slot->next;
  } else {
    slot = new Slot;
  }
  *slot = {.stream = stream, .next = open_};
  if (open_ != nullptr) open_->previous = slot;
  open_ = slot;
  ++open_streams_;
  return slot;
}

void ServerSession::Close(Slot* slot, uint32_t error_code) {
  if (slot->unconsumed_bytes > 0) {
    Check(nghttp2_session_consume_connection(session_, slot->unconsumed_bytes));
  }
  (slot->previous != nullptr ? slot->previous->next : open_) = slot->next;
  if (slot->next != nullptr) slot->next->previous = slot->previous;
  --open_streams_;
  ServerStream* const stream = slot->stream;
  slot->next = std::exchange(free_, slot);
  stream->OnClosed(error_code);
}

// An id below one that was used, and never used itself, is an error of the connection (RFC 9113
// section 5.1.1); libnghttp2 passes over it, as over the trailers of a stream that has been reset.
void ServerSession::CheckStreamId(int32_t stream_id) {
  if (stream_id > last_id_) {
    has_skipped_ids_ = has_skipped_ids_ || stream_id > last_id_ + (last_id_ == 0 ? 1 : 2);
    last_id_ = stream_id;
  } else if (has_skipped_ids_ && nghttp2_session_find_stream(session_, stream_id) == nullptr) {
    Break(kProtocolError, "a stream id below one before it");
  }
}

void ServerSession::Refill(int64_t now_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  if (refilled_ns_ == 0) refilled_ns_ = now_ns;
  const int64_t second_share = std::clamp<int64_t>(now_ns - refilled_ns_, 0, 60 * kSecond);
  const int64_t more = second_share * limits_.idle_frames_per_sec / kSecond;
  if (more == 0) return;
  refilled_ns_ = now_ns;
  EarnIdleFrames(more);
}

void ServerSession::EarnIdleFrames(int64_t more) {
  idle_frames_left_ = std::min(idle_frames_left_ + more, limits_.idle_frames_burst);
}

void ServerSession::PayIdleFrame() {
  if (--idle_frames_left_ >= 0 || broken_) return;
  Break(kEnhanceYourCalm, "too many frames that carry nothing");
}

void ServerSession::Break(uint32_t error_code, std::string fault) {
  broken_ = true;
  fault_ = std::move(fault);
  Check(nghttp2_session_terminate_session(session_, error_code));
}

}  // namespace weir::http2
