// Channel: what carries a Stream's bytes in memory, where there is no socket: one stream of an
// HTTP/2 connection, for one. Whoever implements it stands where the kernel stands for a socket.
//
// Thread safety: the loop's thread only. Ownership: shared by the Stream and the other side, which
// may go in either order.
//
//   auto channel = std::make_shared<MyChannel>();
//   loop.Spawn(Serve(Stream::OverChannel(loop, channel, peer, is_tls)));
//   channel->Arrived(bytes);            // Appends them to what Read gives, and calls
//   RaiseReadable.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "net/stream.h"

namespace weir::net {

class Channel {
 public:
  virtual ~Channel() = default;

  // As much as there is and fits into `room`, which is not empty. kOk and no bytes: nothing yet;
  // RaiseReadable follows when there is. kEnd, kBroken: as on a socket.
  virtual IoResult Receive(std::span<char> room) = 0;
  // Whether Receive would give bytes or an end.
  virtual bool readable() const = 0;
  // Takes a part of `bytes`, which are not empty. kOk and no bytes: no room; RaiseWritable follows
  // when there is. kBroken: nobody takes them any more.
  virtual IoResult Send(std::string_view bytes) = 0;
  // The stream says that it has written its last. Detached does, too.
  virtual void ShutdownWrite() = 0;
  // The stream is gone.
  virtual void Detached() = 0;

 protected:
  Channel() = default;
  // Tell the stream, if there still is one. Whoever waits goes on later in the loop's tick; Receive
  // and Send may be called from within.
  void RaiseReadable();
  void RaiseWritable();
  // The other side is gone: Receive and Send say kBroken from now on.
  void RaiseHangup();

 private:
  friend class Stream;
  void Raise(uint32_t events);
  void Detach() {
    stream_ = nullptr;
    Detached();
  }

  Stream* stream_ = nullptr;
};

}  // namespace weir::net
