// The client's side of an HTTP/2 connection for tests, without I/O: libnghttp2, and frames by hand
// where a test misbehaves.
//
//   Http2Client client;
//   const int32_t id = client.Request({{":method", "GET"}, …});
//   server.Feed(client.TakeOutput(), now_ns);
//   client.Feed(bytes);
//   EXPECT_EQ(client.answer(id).header(":status"), "200");
//
// Thread safety: none.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing {

using Http2Fields = std::vector<std::pair<std::string, std::string>>;

// A frame as RFC 9113 section 4.1 has it.
inline std::string Http2Frame(uint8_t type, uint8_t flags, uint32_t stream_id,
                              std::string_view payload) {
  std::string frame;
  const auto byte = [&frame](uint32_t value) { frame.push_back(static_cast<char>(value & 0xff)); };
  const auto length = static_cast<uint32_t>(payload.size());
  for (const int shift : {16, 8, 0}) byte(length >> shift);
  byte(type);
  byte(flags);
  for (const int shift : {24, 16, 8, 0}) byte(stream_id >> shift);
  return frame + std::string(payload);
}

class Http2Client {
 public:
  struct Answer {
    std::vector<Http2Fields> heads;  // Interim ones first; trailers last.
    std::string body;
    bool closed = false;
    uint32_t error_code = 0;

    // Of the last head that has it; "" without.
    std::string header(std::string_view name) const {
      for (auto head = heads.rbegin(); head != heads.rend(); ++head) {
        for (const auto& [key, value] : *head) {
          if (key == name) return value;
        }
      }
      return "";
    }
  };

  // `window_bytes`: what an answer may send before the test lets it go on (Consume).
  explicit Http2Client(std::optional<uint32_t> window_bytes = {}) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, OnBeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_auto_window_update(option, window_bytes.has_value());
    nghttp2_session_client_new2(&session_, callbacks, this, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                           window_bytes.value_or(65535)};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &window, 1);
  }
  ~Http2Client() { nghttp2_session_del(session_); }
  Http2Client(const Http2Client&) = delete;
  Http2Client& operator=(const Http2Client&) = delete;

  // `body`: none ends the request with its head.
  int32_t Request(const Http2Fields& fields, std::optional<std::string> body = {}) {
    std::vector<nghttp2_nv> pairs;
    for (const auto& [name, value] : fields) pairs.push_back(Pair(name, value));
    nghttp2_data_provider provider{.source = {.ptr = this}, .read_callback = ReadBody};
    const int32_t id = nghttp2_submit_request(session_, nullptr, pairs.data(), pairs.size(),
                                              body ? &provider : nullptr, nullptr);
    if (id < 0) throw std::runtime_error(nghttp2_strerror(id));
    if (body) bodies_[id] = std::move(*body);
    return id;
  }
  // A request whose body does not end.
  int32_t RequestOpen(const Http2Fields& fields, std::string beginning) {
    const int32_t id = Request(fields, std::move(beginning));
    open_.insert(id);
    return id;
  }
  void Reset(int32_t id, uint32_t code = NGHTTP2_CANCEL) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, code);
  }
  void Consume(int32_t id, size_t bytes) { nghttp2_session_consume(session_, id, bytes); }

  std::string TakeOutput() {
    std::string output;
    const uint8_t* bytes = nullptr;
    for (;;) {
      const ssize_t count = nghttp2_session_mem_send(session_, &bytes);
      if (count < 0) throw std::runtime_error(nghttp2_strerror(static_cast<int>(count)));
      if (count == 0) return output;
      output.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
    }
  }
  void Feed(std::string_view bytes) {
    const ssize_t taken = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    if (taken < 0) throw std::runtime_error(nghttp2_strerror(static_cast<int>(taken)));
  }

  const Answer& answer(int32_t id) { return answers_[id]; }
  // What of a request's body has not been sent.
  size_t body_left(int32_t id) { return bodies_[id].size(); }
  // The error code of the last GOAWAY.
  std::optional<uint32_t> goaway() const { return goaway_; }
  int32_t goaway_last_stream() const { return goaway_last_stream_; }
  uint32_t server_setting(nghttp2_settings_id id) const {
    return nghttp2_session_get_remote_settings(session_, id);
  }

 private:
  static Http2Client& Self(void* user) { return *static_cast<Http2Client*>(user); }
  static nghttp2_nv Pair(const std::string& name, const std::string& value) {
    return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
            reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
            NGHTTP2_NV_FLAG_NONE};
  }
  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Self(user).answers_[frame->hd.stream_id].heads.emplace_back();
    return 0;
  }
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_bytes, const uint8_t* value, size_t value_bytes, uint8_t,
                      void* user) {
    Self(user).answers_[frame->hd.stream_id].heads.back().emplace_back(
        std::string(reinterpret_cast<const char*>(name), name_bytes),
        std::string(reinterpret_cast<const char*>(value), value_bytes));
    return 0;
  }
  static int OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t bytes,
                    void* user) {
    Self(user).answers_[id].body.append(reinterpret_cast<const char*>(data), bytes);
    return 0;
  }
  static int OnClose(nghttp2_session*, int32_t id, uint32_t code, void* user) {
    Self(user).answers_[id].closed = true;
    Self(user).answers_[id].error_code = code;
    return 0;
  }
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_GOAWAY) return 0;
    Self(user).goaway_ = frame->goaway.error_code;
    Self(user).goaway_last_stream_ = frame->goaway.last_stream_id;
    return 0;
  }
  static ssize_t ReadBody(nghttp2_session*, int32_t id, uint8_t* room, size_t room_bytes,
                          uint32_t* flags, nghttp2_data_source*, void* user) {
    std::string& body = Self(user).bodies_[id];
    const size_t bytes = std::min(room_bytes, body.size());
    std::copy_n(body.data(), bytes, reinterpret_cast<char*>(room));
    body.erase(0, bytes);
    const bool stays_open = Self(user).open_.contains(id);
    if (stays_open && bytes == 0) return NGHTTP2_ERR_DEFERRED;
    if (body.empty() && !stays_open) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(bytes);
  }

  nghttp2_session* session_ = nullptr;
  std::map<int32_t, Answer> answers_;
  std::map<int32_t, std::string> bodies_;
  std::set<int32_t> open_;
  std::optional<uint32_t> goaway_;
  int32_t goaway_last_stream_ = 0;
};

}  // namespace weir::testing
