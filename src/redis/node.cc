#include "redis/node.h"

#include <algorithm>
#include <string>
#include <utility>

#include "net/stream.h"

namespace weir::redis {
namespace {

constexpr size_t kWriteBytesMax = 256 << 10;  // One write, so that no reply waits for all.
constexpr size_t kReadBytes = 16 << 10;
constexpr int64_t kRenewPeriodNs = 1'000'000'000;

// Each node and loop has jitter of its own.
uint64_t SeedOf(uint64_t seed, const Address& address) {
  return (seed + std::hash<std::string>()(address.ToString())) * 0x9e3779b97f4a7c15;
}

Error EndOf(const Address& address, net::IoStatus status, bool stalled) {
  std::string_view what = "the connection broke";
  if (status == net::IoStatus::kEnd) what = "the server closed the connection";
  if (stalled) what = "the server stopped answering";
  return {ErrorCode::kUnavailable, address.ToString() + ": " + std::string(what)};
}

}  // namespace

// One connection.
struct Node::Link {
  Link(net::EventLoop& loop, std::unique_ptr<net::Stream> the_stream, size_t under_way_max,
       int64_t the_stall_ns)
      : stream(std::move(the_stream)),
        pipeline(under_way_max),
        send_wanted(loop),
        writer_done(loop),
        stall(loop, [this] { CheckStall(); }),
        stall_ns(the_stall_ns) {}

  // A reply that is overdue by stall_ns says that the peer is dead. One timer for each connection,
  // set for the earliest deadline under way.
  void ArmStall(int64_t deadline_ns) {
    if (deadline_ns > INT64_MAX - stall_ns) return;
    if (stall.armed() && stall_at_ns <= deadline_ns + stall_ns) return;
    stall_at_ns = deadline_ns + stall_ns;
    stall.ArmAt(stall_at_ns);
  }
  void CheckStall() {
    const int64_t deadline_ns = pipeline.EarliestDeadlineNs();
    if (deadline_ns > stream->loop().now_ns() - stall_ns) {
      ArmStall(deadline_ns);
      return;
    }
    stalled = true;
    stream->Cancel();
  }
  bool takes_calls() const { return !writing && !ended && !draining && pipeline.has_room(); }

  std::unique_ptr<net::Stream> stream;
  Pipeline pipeline;
  net::Event send_wanted;
  net::Event writer_done;
  net::Timer stall;
  const int64_t stall_ns;
  int64_t stall_at_ns = 0;
  bool writing = false;   // The writer has been woken and has not gone back to waiting.
  bool draining = false;  // Sends no more.
  bool stalled = false;
  bool ended = false;
};

std::shared_ptr<Node> Node::Create(std::shared_ptr<Shared> shared, const Address& address,
                                   int connections, NodeObserver& observer) {
  std::shared_ptr<Node> node(new Node(std::move(shared), address, connections, observer));
  node->shared_->loop.Spawn(ConnectLoop(node));
  return node;
}

Node::Node(std::shared_ptr<Shared> shared, const Address& address, int connections,
           NodeObserver& observer)
    : shared_(std::move(shared)),
      address_(address),
      connections_(connections),
      observer_(&observer),
      backoff_(shared_->options.backoff_min_ns, shared_->options.backoff_max_ns,
               SeedOf(shared_->options.seed, address)),
      wake_(shared_->loop) {}

Node::~Node() { waiting_.FinishAll(Call::Outcome::kCancelled, {}); }

void Node::RaiseConnections(int connections) {
  if (connections <= connections_) return;
  connections_ = connections;
  wake_.Set();
}

int Node::ready() const {
  return static_cast<int>(
      std::ranges::count_if(links_, [](const auto& link) { return !link->draining; }));
}

size_t Node::under_way() const {
  size_t total = 0;
  for (const auto& link : links_) total += link->pipeline.under_way();
  return total;
}

uint64_t Node::late_replies() const {
  uint64_t total = 0;
  for (const auto& link : links_) total += link->pipeline.late_replies();
  return total;
}

// Connecting
// ----------------------------------------------------------------------------------------------------------

Task<void> Node::ConnectLoop(std::shared_ptr<Node> node) {
  Shared& shared = *node->shared_;
  while (!node->closed_) {
    if (node->retired_ || node->sockets() >= node->connections_) {
      co_await node->wake_.Wait();
      node->wake_.Reset();
      continue;
    }
    if (shared.loop.now_ns() < node->next_attempt_ns_) {
      co_await node->wake_.WaitUntil(node->next_attempt_ns_);
      node->wake_.Reset();
      continue;
    }
    node->attempting_ = true;
    ++shared.connects;
    const ClientOptions& options = shared.options;
    Handshake::Options handshake;
    handshake.credentials = options.credentials;
    handshake.client_name = options.client_name;
    handshake.database = options.database;
    handshake.require_master = options.kind == ClientOptions::Kind::kSentinel;
    Result<Dialed> dialed = co_await shared.dialer.Dial(
        node->address_, std::move(handshake), shared.loop.now_ns() + options.connect_timeout_ns);
    node->attempting_ = false;
    if (node->closed_ || node->retired_) continue;
    if (dialed) {
      node->OnDialed(std::move(*dialed));
    } else {
      node->OnDialFailed(dialed.error());
    }
  }
}

void Node::OnDialFailed(const Error& error) {
  ++shared_->connects_failed;
  shared_->last_fault = error.message;
  fault_ = error;
  next_attempt_ns_ = shared_->loop.now_ns() + backoff_.NextNs();
  if (!std::exchange(failing_, true)) shared_->Notice(error.message);
  FailTheImpatient();
  if (observer_ != nullptr) observer_->OnTrouble(*this);
}

void Node::OnDialed(Dialed dialed) {
  if (std::exchange(failing_, false)) shared_->Notice(address_.ToString() + ": connected again");
  fault_ = {};
  dialed.stream->SetWriteTimeout(shared_->options.connect_timeout_ns + shared_->options.stall_ns);
  auto link = std::make_shared<Link>(shared_->loop, std::move(dialed.stream),
                                     shared_->options.queue_calls_max, shared_->options.stall_ns);
  links_.push_back(link);
  // Nothing has been asked, so only pushes can have come; anything else breaks the first read.
  if (!dialed.rest.empty() && !link->pipeline.Receive(dialed.rest)) link->stream->Cancel();
  shared_->loop.Spawn(WriteLoop(shared_from_this(), link));
  shared_->loop.Spawn(ReadLoop(shared_from_this(), link));
  if (!flush_pending_) Kick();
}

// Sending and receiving
// ----------------------------------------------------------------------------------------------------------

void Node::Enqueue(Call& call) {
  if (closed_ || retired_) {
    call.Finish(Call::Outcome::kRoute);
    return;
  }
  const bool hopeless = links_.empty() && !attempting_ && next_attempt_ns_ >= call.deadline_ns;
  if (hopeless) {
    call.Finish(Call::Outcome::kNotSent, fault_);
    return;
  }
  waiting_.PushBack(call);
  if (!flush_pending_) Kick();
}

// Wakes the least busy connection to take what waits; in turn among equals.
void Node::Kick() {
  if (waiting_.empty()) return;
  Link* best = nullptr;
  for (size_t i = 0; i < links_.size(); ++i) {
    Link& link = *links_[(next_link_ + i) % links_.size()];
    if (!link.takes_calls()) continue;
    if (best == nullptr || link.pipeline.under_way() < best->pipeline.under_way()) best = &link;
  }
  if (best == nullptr) return;
  ++next_link_;
  flush_pending_ = true;
  best->writing = true;
  best->send_wanted.Set();
}

Task<void> Node::WriteLoop(std::shared_ptr<Node> node, std::shared_ptr<Link> link) {
  while (!link->ended) {
    co_await link->send_wanted.Wait();
    link->send_wanted.Reset();
    if (link->writing) {
      co_await node->shared_->loop.TickEnd();
      node->flush_pending_ = false;
    }
    while (!link->ended && !link->draining && !node->waiting_.empty() &&
           link->pipeline.has_room()) {
      link->ArmStall(link->pipeline.Send(node->waiting_, kWriteBytesMax));
      const net::IoResult sent = co_await link->stream->Write(link->pipeline.out());
      link->pipeline.Wrote(sent.bytes);
      if (!sent.ok()) {
        link->stream->Cancel();  // Ends the reader, which ends the rest.
        link->ended = true;
      }
    }
    link->writing = false;
    if (!node->flush_pending_) node->Kick();
  }
  link->writer_done.Set();
}

Task<void> Node::ReadLoop(std::shared_ptr<Node> node, std::shared_ptr<Link> link) {
  Error error;
  char buffer[kReadBytes];
  for (;;) {
    const net::IoResult got = co_await link->stream->Read(buffer);
    if (!got.ok()) {
      error = EndOf(node->address_, got.status, link->stalled);
      break;
    }
    Result<void> received = link->pipeline.Receive({buffer, got.bytes});
    if (!received) {
      error = {ErrorCode::kUnavailable,
               node->address_.ToString() + ": " + received.error().message};
      break;
    }
    if (link->pipeline.replies() > 0) node->backoff_.Reset();  // It answers.
    if (link->draining && link->pipeline.under_way() == 0) break;
    if (!node->flush_pending_) node->Kick();
  }
  link->ended = true;
  link->stream->Cancel();
  link->send_wanted.Set();
  co_await link->writer_done.Wait();
  node->OnLinkEnded(*link, error);
}

void Node::OnLinkEnded(Link& link, const Error& error) {
  const bool answered = link.pipeline.replies() > 0;
  const bool expected = link.draining || closed_;
  shared_->late_replies += link.pipeline.late_replies();
  link.stall.Cancel();
  link.pipeline.Fail(waiting_, error);
  std::erase_if(links_, [&](const auto& one) { return one.get() == &link; });
  if (retired_) {
    waiting_.FinishAll(Call::Outcome::kRoute, {});
    closed_ = closed_ || links_.empty();
  }
  if (!expected) {
    shared_->last_fault = error.message;
    fault_ = error;
    shared_->Notice(error.message);
  }
  // One that never answered a call may be closed again at once: it must not become a storm.
  if (!answered && !expected) {
    next_attempt_ns_ = shared_->loop.now_ns() + backoff_.NextNs();
    FailTheImpatient();
  }
  wake_.Set();
  Kick();
  if (observer_ != nullptr && !expected) observer_->OnTrouble(*this);
}

// Calls whose deadline comes before the next attempt need not wait for it.
void Node::FailTheImpatient() {
  if (!links_.empty()) return;
  Call* next = nullptr;
  for (Call* call = waiting_.front(); call != nullptr; call = next) {
    next = waiting_.Next(*call);
    if (call->deadline_ns <= next_attempt_ns_) call->Finish(Call::Outcome::kNotSent, fault_);
  }
}

// Leaving
// ----------------------------------------------------------------------------------------------------------

void Node::Drain(Link& link) {
  link.draining = true;
  if (link.pipeline.under_way() == 0) link.stream->Cancel();
}

void Node::Renew() {
  const int64_t now_ns = shared_->loop.now_ns();
  if (now_ns - renewed_ns_ < kRenewPeriodNs) return;
  renewed_ns_ = now_ns;
  for (const auto& link : links_) Drain(*link);
}

void Node::Retire() {
  retired_ = true;
  observer_ = nullptr;
  waiting_.FinishAll(Call::Outcome::kRoute, {});
  for (const auto& link : links_) Drain(*link);
  closed_ = closed_ || links_.empty();
  wake_.Set();
}

void Node::Close() {
  closed_ = true;
  observer_ = nullptr;
  waiting_.FinishAll(Call::Outcome::kCancelled, {});
  for (const auto& link : links_) {
    link->pipeline.Cancel();
    link->stream->Cancel();
  }
  wake_.Set();
}

}  // namespace weir::redis
