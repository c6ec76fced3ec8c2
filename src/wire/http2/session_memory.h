// Memory for libnghttp2, which takes and gives back a dozen small blocks for each request: from the
// thread's free lists in place of the heap.
//
//   nghttp2_session_server_new3(&session, callbacks, user, options, SessionMemory());
//
// Thread safety: any thread.
#pragma once

#include <nghttp2/nghttp2.h>

namespace weir::http2 {

// Static.
nghttp2_mem* SessionMemory();

}  // namespace weir::http2
