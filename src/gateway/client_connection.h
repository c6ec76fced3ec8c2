// The life of one client connection: heads are read under the header and idle deadlines, calls are
// handled in the order in which they came (pipelined ones too), and the end is gentle when an
// answer might still be on its way.
//
// Thread safety: the loop's thread only. Memory: while it waits for a request, a connection holds
// its stream, this coroutine and 4 KiB to read into.
#pragma once

#include <memory>

#include "base/task.h"
#include "net/stream.h"

namespace weir::gateway {

class LoopState;

Task<void> ServeClient(std::shared_ptr<LoopState> state, std::unique_ptr<net::Stream> stream);

}  // namespace weir::gateway
