#include "gateway/gateway.h"

#include <utility>

#include "gateway/client_connection.h"
#include "gateway/loop_state.h"

namespace weir::gateway {

Result<std::unique_ptr<Gateway>> Gateway::Create(const GatewayOptions& options) {
  if (options.worker == nullptr || options.loop == nullptr || options.resolver == nullptr) {
    return InvalidArgument("the gateway needs a worker, a loop and a resolver");
  }
  return std::unique_ptr<Gateway>(new Gateway(std::make_shared<LoopState>(options)));
}

Gateway::Gateway(std::shared_ptr<LoopState> state) : state_(std::move(state)) {}
Gateway::~Gateway() = default;

Task<void> Gateway::Serve(std::unique_ptr<net::Stream> stream) {
  return ServeClient(state_, std::move(stream));
}
void Gateway::CloseIdle() { state_->CloseIdle(); }
int Gateway::connections() const { return state_->connections(); }
int Gateway::calls() const { return state_->calls(); }

}  // namespace weir::gateway
