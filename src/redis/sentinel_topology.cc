#include "redis/sentinel_topology.h"

#include <algorithm>
#include <string>
#include <utility>

#include "wire/resp/reply_parser.h"

namespace weir::redis {
namespace {

constexpr size_t kSentinelsMax = 32;
constexpr int64_t kAskPeriodNs = 5'000'000'000;
// Trouble this soon after an answer is no reason to ask again: the master's address is fresh.
constexpr int64_t kFreshNs = 200'000'000;

}  // namespace

std::shared_ptr<SentinelTopology> SentinelTopology::Create(std::shared_ptr<Shared> shared,
                                                           OnChange on_change) {
  std::shared_ptr<SentinelTopology> self(
      new SentinelTopology(std::move(shared), std::move(on_change)));
  self->shared_->loop.Spawn(Watch(self));
  return self;
}

SentinelTopology::SentinelTopology(std::shared_ptr<Shared> shared, OnChange on_change)
    : shared_(std::move(shared)),
      on_change_(std::move(on_change)),
      nodes_(shared_, *this),
      sentinels_(shared_->options.addresses),
      backoff_(shared_->options.backoff_min_ns, shared_->options.backoff_max_ns,
               shared_->options.seed * 0x9e3779b97f4a7c15),
      wake_(shared_->loop) {}

std::shared_ptr<Node> SentinelTopology::Pick(std::string_view) { return master_; }

void SentinelTopology::OnError(Node&, const ErrorMeaning& meaning, std::string_view) {
  if (meaning.remedy == Remedy::kFindMaster) LookAround();
}

void SentinelTopology::OnTrouble(Node&) { LookAround(); }

// Ends the conversation, so that the next Sentinel is asked.
void SentinelTopology::LookAround() {
  if (stream_ == nullptr || shared_->loop.now_ns() - answered_ns_ < kFreshNs) return;
  stream_->Cancel();
}

Task<void> SentinelTopology::Watch(std::shared_ptr<SentinelTopology> self) {
  Shared& shared = *self->shared_;
  while (!self->closed_) {
    const Address sentinel = self->sentinels_[self->next_sentinel_++ % self->sentinels_.size()];
    Handshake::Options handshake;
    handshake.credentials = shared.options.sentinel_credentials;
    handshake.client_name = shared.options.client_name;
    const int64_t deadline_ns = shared.loop.now_ns() + shared.options.connect_timeout_ns;
    Result<Dialed> dialed =
        co_await shared.dialer.Dial(sentinel, std::move(handshake), deadline_ns);
    if (self->closed_) break;
    ++self->failed_in_turn_;  // Until it has named a master.
    int64_t again_ns = shared.loop.now_ns();
    if (dialed) {
      // A Sentinel that answers and hangs up at once must not be called in a tight loop.
      again_ns += kFreshNs;
      co_await Converse(self, sentinel, std::move(*dialed));
    } else {
      self->OnFault(sentinel, dialed.error());
    }
    if (self->failed_in_turn_ >= self->sentinels_.size()) {
      again_ns = std::max(again_ns, shared.loop.now_ns() + self->backoff_.NextNs());
    }
    co_await self->PauseUntil(again_ns);
  }
}

Task<void> SentinelTopology::PauseUntil(int64_t until_ns) {
  while (!closed_ && shared_->loop.now_ns() < until_ns) {
    co_await wake_.WaitUntil(until_ns);
    wake_.Reset();
  }
}

Task<bool> SentinelTopology::Say(net::Stream& stream, wire::Buffer& out) {
  const net::IoResult sent = co_await stream.Write(out.View());
  out.Clear();
  co_return sent.ok();
}

Task<void> SentinelTopology::Converse(std::shared_ptr<SentinelTopology> self, Address sentinel,
                                      Dialed dialed) {
  Shared& shared = *self->shared_;
  net::Stream& stream = *dialed.stream;
  SentinelSession session(shared.options.master_name, dialed.protocol);
  resp::ReplyParser parser;
  wire::Buffer out;
  char buffer[4096];
  std::string_view input = dialed.rest;
  self->stream_ = &stream;
  self->answered_ns_ = shared.loop.now_ns();  // It is about to be.
  session.Start(out);
  bool goes_on = co_await Say(stream, out);
  while (goes_on && !self->closed_) {
    const resp::ReplyParser::State parsed = parser.Next(input);
    if (parsed == resp::ReplyParser::State::kBroken) break;
    if (parsed == resp::ReplyParser::State::kValue) {
      const SentinelSession::Event event = session.OnReply(parser.Take());
      if (event == SentinelSession::Event::kFailed) {
        self->OnFault(sentinel,
                      {session.error().code, sentinel.ToString() + ": " + session.error().message});
        break;
      }
      if (event == SentinelSession::Event::kMaster) self->OnMaster(session.master());
      self->Learn(session.sentinels());
      continue;
    }
    const int64_t patience_ns =
        session.waiting() ? shared.options.connect_timeout_ns : kAskPeriodNs;
    stream.SetReadDeadline(shared.loop.now_ns() + patience_ns);
    const net::IoResult got = co_await stream.Read(buffer);
    if (got.status == net::IoStatus::kTimedOut && !session.waiting() && session.AskAgain(out)) {
      goes_on = co_await Say(stream, out);
      continue;
    }
    if (!got.ok()) break;
    input = {buffer, got.bytes};
  }
  self->stream_ = nullptr;
}

void SentinelTopology::OnMaster(const Address& address) {
  answered_ns_ = shared_->loop.now_ns();
  failed_in_turn_ = 0;
  failing_ = false;
  backoff_.Reset();
  if (master_ != nullptr && master_->address() == address) return;
  const std::shared_ptr<Node> old = std::exchange(master_, nullptr);
  master_ = nodes_.Get(address, shared_->options.connections);
  ++shared_->topology_changes;
  shared_->Notice("the master " + shared_->options.master_name + " is at " + address.ToString());
  if (old != nullptr) nodes_.Retire(old->address());
  if (on_change_) on_change_();
}

void SentinelTopology::Learn(const std::vector<Address>& sentinels) {
  for (const Address& address : sentinels) {
    const bool known = std::ranges::find(sentinels_, address) != sentinels_.end();
    if (!known && sentinels_.size() < kSentinelsMax) sentinels_.push_back(address);
  }
}

void SentinelTopology::OnFault(const Address&, const Error& error) {
  shared_->last_fault = error.message;
  if (failed_in_turn_ >= sentinels_.size() && !std::exchange(failing_, true)) {
    shared_->Notice("no Sentinel names the master; the last one: " + error.message);
  }
}

void SentinelTopology::AddTo(Client::Stats& stats) const { nodes_.AddTo(stats); }

void SentinelTopology::Close() {
  closed_ = true;
  on_change_ = nullptr;
  master_ = nullptr;
  if (stream_ != nullptr) stream_->Cancel();
  wake_.Set();
  nodes_.Close();
}

}  // namespace weir::redis
