// Http2Connection: the shell between a socket and an HTTP/2 session. One task reads, another writes
// what the session has to say at the end of each of the loop's ticks. Who answers the streams is
// the acceptor's matter.
//
// Thread safety: the loop's thread only. Ownership: owns the socket and the session; the acceptor
// and the connections outlive it.
//
//   Http2Connection connection(std::move(socket), options, acceptor, connections);
//   acceptor.Start(connection.session());
//   co_await connection.Run();
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/task.h"
#include "net/event.h"
#include "net/stream.h"
#include "wire/buffer.h"
#include "wire/http2/server_session.h"

namespace weir::net {

class Http2Connection;

struct Http2Options {
  http2::SessionLimits limits;
  int64_t header_timeout_ns = 10'000'000'000;  // From a head's first frame to its last. 0: none.
  int64_t idle_timeout_ns = 75'000'000'000;    // Without a stream. 0: none.
  // For a write to the connection, and without progress of an answer that is complete here. 0:
  // none.
  int64_t write_timeout_ns = 30'000'000'000;
  // At this age, or up to a tenth later, a connection is asked to leave, so that clients spread
  // over servers that have come since. 0: never.
  int64_t max_age_ns = 0;
};

// The HTTP/2 connections of one loop, for its drain.
class Http2Connections {
 public:
  // In this order. Asks clients to open no more streams (GOAWAY), those that come all the same are
  // served: on connections whose streams are over, at once or when they are, since many clients
  // take a GOAWAY for the failure of the calls that they have under way.
  void BeginDrain();
  // The same on the others.
  void AskToLeave();
  // Takes no more streams; connections without one are closed, the others when their last is over.
  void CloseIdle();

  // Answers, and writes to connections, that are complete here and not with the client.
  int unsent() const { return unsent_; }
  void AddUnsent(int more) { unsent_ += more; }

 private:
  friend class Http2Connection;
  Http2Connection* first_ = nullptr;
  int unsent_ = 0;
  bool draining_ = false;
};

class Http2Connection {
 public:
  Http2Connection(std::unique_ptr<Stream> socket, const Http2Options& options,
                  http2::Acceptor& acceptor, Http2Connections& connections);
  ~Http2Connection();
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  // Until the peer closes, breaks the protocol, times out, or a drain or its age ends it.
  Task<void> Run();

  http2::ServerSession& session() { return session_; }
  // The session may have something to say.
  void Wake() { wake_.Set(); }
  Stream& socket() { return *socket_; }
  EventLoop& loop() { return loop_; }
  Http2Connections& connections() { return connections_; }

 private:
  friend class Http2Connections;
  // For the drain.
  void AskToLeave();
  // Unless a call is under way, or the first is still to come.
  void AskToLeaveWhenUsed();
  void TakeNoMore();
  void Age();

  Task<void> Read();
  static Task<void> Write(Http2Connection& connection);
  Task<void> WriteAll();
  // After frames have come or gone.
  void NoteStreams();
  void SetDeadline();

  EventLoop& loop_;
  const std::unique_ptr<Stream> socket_;
  const Http2Options options_;
  Http2Connections& connections_;
  Http2Connection* next_ = nullptr;
  Http2Connection* previous_ = nullptr;

  wire::Buffer in_;
  wire::Buffer out_;
  Event wake_;
  Event written_;      // The writing task has ended.
  bool over_ = false;  // Nothing is read any more; the writing task ends with what is left.
  bool asked_to_leave_ = false;
  bool closing_ = false;
  bool was_busy_ = false;
  uint64_t requests_seen_ = 0;
  int64_t idle_since_ns_;
  int32_t head_of_ = 0;  // The stream whose head is arriving, or 0.
  int64_t head_began_ns_ = 0;
  Timer aging_;
  http2::ServerSession session_;  // Last: what its end closes uses the rest.
};

}  // namespace weir::net
