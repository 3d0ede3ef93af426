#include "fakes/fake_wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tutti::test {

class FakeWire : public Wire {
 public:
  FakeWire(FakeNetwork& network, int rank)
      : network_(network), rank_(rank), address_(to_bytes(view_of(fmt::format("rank {}", rank)))) {}

  const Bytes& address() const override { return address_; }
  Status connect(int peer, ByteView address) override {
    record.connected.emplace_back(peer, to_bytes(address));
    return Status::ok();
  }
  void set_handlers(Handlers handlers) override { handlers_ = std::move(handlers); }
  Result<WireTicket> post(int peer, ByteView header, ByteView payload) override;
  bool progress() override;
  void sleep(Clock::time_point /*until*/) override { ++record.sleeps; }
  void wake() override { ++record.wakes; }
  Status close_doors() override {
    record.doors_closed = true;
    return Status::ok();
  }
  void cancel_all() override;
  std::string text() const override { return "a fake"; }

  FakeNetwork::Record record;
  bool is_dead = false, is_stopped = false;
  std::vector<int> lost;  // to be told of

 private:
  using Message = FakeNetwork::Message;
  Message* next_due();
  void complete(Message& message);

  FakeNetwork& network_;
  const int rank_;
  const Bytes address_;
  Handlers handlers_;
};

Result<WireTicket> FakeWire::post(int peer, ByteView header, ByteView payload) {
  ++record.posts;
  if (header.size() > kMostHeaderBytes) return Status(StatusCode::kInternal, "a long header");
  FakeNetwork& net = network_;
  auto message = std::make_unique<Message>();
  message->number = net.next_number_++;
  message->from = rank_;
  message->to = peer;
  message->header = to_bytes(header);
  message->source = payload;
  message->at_post = to_bytes(payload);
  message->arrives = net.now_ + net.between(net.options_.least_delay, net.options_.most_delay);
  message->sent =
      net.now_ + net.between(net.options_.least_sent_delay, net.options_.most_sent_delay);
  if (!net.options_.overtaking) {
    for (const auto& other : net.messages_) {
      if (other->from != rank_ || other->to != peer) continue;
      message->arrives = std::max(message->arrives, other->arrives);
    }
  }
  const WireTicket ticket = message->number;
  net.messages_.push_back(std::move(message));
  if (net.options_.may_send_within_post && net.random_() % 4 == 0) complete(*net.messages_.back());
  return ticket;
}

void FakeWire::complete(Message& message) {
  const WireTicket ticket = message.number;
  network_.read(message);
  if (!std::equal(message.source.begin(), message.source.end(), message.at_post.begin())) {
    network_.misdeed_ =
        fmt::format("rank {} changed the payload of message {} before it was sent", rank_, ticket);
  }
  message.is_sent = true;
  message.source = {};
  handlers_.sent(ticket);
}

FakeWire::Message* FakeWire::next_due() {
  Message* found = nullptr;
  FakeNetwork::Clock::time_point at = network_.now_;
  for (const auto& message : network_.messages_) {
    const bool arrives =
        message->to == rank_ && network_.may_arrive(*message) && message->arrives <= at;
    const bool is_sent = message->from == rank_ && !message->is_sent && message->sent <= at;
    if (!arrives && !is_sent) continue;
    // The earliest, and of those the first that was posted.
    const auto when = arrives ? message->arrives : message->sent;
    if (found != nullptr && when >= at) continue;
    found = message.get();
    at = when;
  }
  return found;
}

bool FakeWire::progress() {
  if (is_dead || is_stopped) return false;
  bool any = false;
  while (Message* message = next_due()) {
    any = true;
    const bool arrives =
        message->to == rank_ && network_.may_arrive(*message) && message->arrives <= network_.now_;
    if (!arrives) {
      complete(*message);
      continue;
    }
    network_.read(*message);
    message->has_arrived = true;
    const Bytes header = std::move(message->header), payload = std::move(message->payload);
    if (handlers_.arrived) handlers_.arrived(header, payload);
  }
  network_.drop_done();
  for (const int peer : std::exchange(lost, {})) {
    any = true;
    handlers_.lost(peer, Status(StatusCode::kPeerFailed, "the connection was closed"));
  }
  return any;
}

void FakeWire::cancel_all() {
  record.cancelled = true;
  for (const auto& message : network_.messages_) {
    if (message->from != rank_ || message->is_sent) continue;
    message->is_sent = true;
    if (!message->is_read) message->has_arrived = true;  // never
    message->source = {};
  }
  network_.drop_done();
}

FakeNetwork::FakeNetwork(int ranks, Options options) : options_(options), random_(options.seed) {
  for (int rank = 0; rank < ranks; ++rank) {
    wires_.push_back(std::make_unique<FakeWire>(*this, rank));
  }
}
FakeNetwork::~FakeNetwork() = default;

Wire& FakeNetwork::wire(int rank) { return *wires_[static_cast<std::size_t>(rank)]; }
const FakeNetwork::Record& FakeNetwork::record(int rank) const {
  return wires_[static_cast<std::size_t>(rank)]->record;
}

FakeNetwork::Duration FakeNetwork::between(Duration least, Duration most) {
  if (most <= least) return least;
  const auto span = static_cast<std::uint64_t>((most - least).count());
  return least + Duration(static_cast<Duration::rep>(random_() % (span + 1)));
}

bool FakeNetwork::is_cut(int a, int b) const {
  const std::pair<int, int> ends = std::minmax(a, b);
  return std::find(cuts_.begin(), cuts_.end(), ends) != cuts_.end();
}

bool FakeNetwork::may_arrive(const Message& message) const {
  return !message.has_arrived && (message.from < 0 || !is_cut(message.from, message.to));
}

void FakeNetwork::read(Message& message) {
  if (message.is_read) return;
  message.is_read = true;
  if (message.from >= 0) message.payload = to_bytes(message.source);
}

void FakeNetwork::drop_done() {
  std::erase_if(messages_, [](const auto& one) { return one->has_arrived && one->is_sent; });
}

FakeNetwork::Clock::time_point FakeNetwork::next_event() const {
  auto next = Clock::time_point::max();
  for (const auto& message : messages_) {
    if (runs(message->to) && may_arrive(*message)) next = std::min(next, message->arrives);
    if (message->from >= 0 && runs(message->from) && !message->is_sent) {
      next = std::min(next, message->sent);
    }
  }
  return next;
}

void FakeNetwork::kill(int rank) {
  wires_[static_cast<std::size_t>(rank)]->is_dead = true;
  for (const auto& message : messages_) {
    if (message->from == rank) message->has_arrived = message->is_sent = true;
    if (message->to == rank) message->has_arrived = true;
  }
  drop_done();
  for (int other = 0; other < ranks(); ++other) {
    if (other != rank) wires_[static_cast<std::size_t>(other)]->lost.push_back(rank);
  }
}

bool FakeNetwork::runs(int rank) const {
  const FakeWire& wire = *wires_[static_cast<std::size_t>(rank)];
  return !wire.is_dead && !wire.is_stopped;
}

void FakeNetwork::stop(int rank) { wires_[static_cast<std::size_t>(rank)]->is_stopped = true; }
void FakeNetwork::resume(int rank) { wires_[static_cast<std::size_t>(rank)]->is_stopped = false; }

void FakeNetwork::cut(int a, int b) { cuts_.push_back(std::minmax(a, b)); }
void FakeNetwork::restore(int a, int b) {
  std::erase(cuts_, std::pair<int, int>(std::minmax(a, b)));
}

std::size_t FakeNetwork::pending() const {
  std::size_t events = 0;
  for (const auto& message : messages_) {
    events += (may_arrive(*message) ? 1U : 0U) + (message->is_sent ? 0U : 1U);
  }
  return events;
}

void FakeNetwork::make_due(std::size_t index) {
  for (const auto& message : messages_) {
    if (may_arrive(*message) && index-- == 0)
      message->arrives = now_;
    else if (!message->is_sent && index-- == 0)
      message->sent = now_;
    else
      continue;
    return;
  }
}

void FakeNetwork::inject(int to, Bytes header, Bytes payload) {
  auto message = std::make_unique<Message>();
  message->number = next_number_++;
  message->to = to;
  message->header = std::move(header);
  message->payload = std::move(payload);
  message->is_read = message->is_sent = true;
  message->arrives = now_;
  messages_.push_back(std::move(message));
}

}  // namespace tutti::test
