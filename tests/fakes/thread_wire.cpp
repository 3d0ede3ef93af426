#include "fakes/thread_wire.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace tutti::test {

struct ThreadNetwork::State {
  struct Letter {
    enum class Kind : std::uint8_t { kMessage, kOffer, kFetched };  // the last one to a sender
    Bytes header, payload;
    Kind kind = Kind::kMessage;
    Bytes from = {};  // of an offer
    WireTicket ticket = 0;
  };
  struct Inbox {
    std::deque<Letter> letters;
    bool woken = false;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Bytes, Inbox> inboxes;
  std::uint64_t opened = 0;
  // Payloads that are with their senders, by address and ticket.
  std::map<std::pair<Bytes, WireTicket>, ByteView> offers;
  std::size_t placed = 0, misplaced = 0;
  bool held = false;

  void deliver(const Bytes& to, Letter letter) {
    const auto found = inboxes.find(to);
    if (found == inboxes.end()) return;
    found->second.letters.push_back(std::move(letter));
    changed.notify_all();
  }
};

namespace {

class ThreadWire final : public tutti::Wire {
 public:
  using Letter = ThreadNetwork::State::Letter;

  ThreadWire(std::shared_ptr<ThreadNetwork::State> network, Bytes address, bool reaches_gpus)
      : network_(std::move(network)), address_(std::move(address)), reaches_gpus_(reaches_gpus) {}
  ~ThreadWire() override {
    cancel_all();
    const std::lock_guard lock(network_->mutex);
    network_->inboxes.erase(address_);
  }

  const Bytes& address() const override { return address_; }
  Status connect(int peer, ByteView address) override {
    peers_[peer] = to_bytes(address);
    return Status::ok();
  }
  void set_handlers(Handlers handlers) override { handlers_ = std::move(handlers); }

  Result<WireTicket> post(int peer, ByteView header, ByteView payload) override {
    const std::lock_guard lock(network_->mutex);
    network_->deliver(peers_.at(peer), {to_bytes(header), to_bytes(payload)});
    sent_.push_back(++last_);
    return last_;
  }

  bool reaches_gpus() const override { return reaches_gpus_; }
  Result<WireTicket> post_from_gpu(int peer, ByteView header, ByteView payload) override {
    const std::lock_guard lock(network_->mutex);
    network_->offers[{address_, ++last_}] = payload;
    network_->deliver(peers_.at(peer),
                      {to_bytes(header), {}, Letter::Kind::kOffer, address_, last_});
    return last_;
  }

  bool progress() override {
    bool any = !sent_.empty();
    for (const WireTicket ticket : std::exchange(sent_, {})) {
      if (handlers_.sent) handlers_.sent(ticket);
    }
    // What was placed in an earlier call.
    for (const Placed& one : std::exchange(placed_, {})) any |= fetch(one);
    for (auto& letter : take_letters()) {
      any = true;
      switch (letter.kind) {
        case Letter::Kind::kMessage:
          if (handlers_.arrived) handlers_.arrived(letter.header, letter.payload);
          break;
        case Letter::Kind::kOffer:
          place(std::move(letter));
          break;
        case Letter::Kind::kFetched:
          if (handlers_.sent) handlers_.sent(letter.ticket);
          break;
      }
    }
    return any;
  }

  void sleep(Clock::time_point until) override {
    if (!placed_.empty()) return;
    std::unique_lock lock(network_->mutex);
    auto& inbox = network_->inboxes[address_];
    network_->changed.wait_until(lock, until,
                                 [&] { return inbox.woken || !inbox.letters.empty(); });
    inbox.woken = false;
  }
  void wake() override {
    const std::lock_guard lock(network_->mutex);
    network_->inboxes[address_].woken = true;
    network_->changed.notify_all();
  }

  Status close_doors() override { return Status::ok(); }
  void cancel_all() override {
    sent_.clear();
    placed_.clear();
    std::unique_lock lock(network_->mutex);
    if (network_->held) {  // UCX may take its time, too
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      lock.lock();
    }
    std::erase_if(network_->offers, [this](const auto& of) { return of.first.first == address_; });
  }
  std::string text() const override { return "threads"; }

 private:
  struct Placed {
    Letter letter;
    std::byte* into = nullptr;  // null: on the host
    std::size_t bytes = 0;
  };

  void place(Letter letter) {
    const std::pair key(letter.from, letter.ticket);
    std::size_t bytes = 0;
    {
      const std::lock_guard lock(network_->mutex);
      const auto offer = network_->offers.find(key);
      if (offer == network_->offers.end()) return;
      bytes = offer->second.size();
    }
    std::byte* const into = handlers_.place ? handlers_.place(letter.header, bytes) : nullptr;
    placed_.push_back({std::move(letter), into, bytes});
  }

  // Whether the sender still has it.
  bool fetch(const Placed& one) {
    Bytes own(one.into == nullptr ? one.bytes : 0);
    std::byte* const into = one.into == nullptr ? own.data() : one.into;
    {
      const std::lock_guard lock(network_->mutex);
      const auto offer = network_->offers.find({one.letter.from, one.letter.ticket});
      if (offer == network_->offers.end()) return false;
      if (network_->held) {
        placed_.push_back(one);
        return false;
      }
      std::copy(offer->second.begin(), offer->second.end(), into);
      network_->offers.erase(offer);
      ++(one.into == nullptr ? network_->misplaced : network_->placed);
      network_->deliver(one.letter.from, {{}, {}, Letter::Kind::kFetched, {}, one.letter.ticket});
    }
    if (handlers_.arrived) handlers_.arrived(one.letter.header, {into, one.bytes});
    return true;
  }

  std::deque<ThreadNetwork::State::Letter> take_letters() {
    const std::lock_guard lock(network_->mutex);
    return std::exchange(network_->inboxes[address_].letters, {});
  }

  const std::shared_ptr<ThreadNetwork::State> network_;
  const Bytes address_;
  const bool reaches_gpus_;
  std::vector<Placed> placed_;
  std::map<int, Bytes> peers_;
  Handlers handlers_;
  std::vector<WireTicket> sent_;
  WireTicket last_ = 0;
};

}  // namespace

ThreadNetwork::ThreadNetwork() : state_(std::make_shared<State>()) {}
ThreadNetwork::~ThreadNetwork() = default;

std::size_t ThreadNetwork::placed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->placed;
}

std::size_t ThreadNetwork::misplaced() const {
  const std::lock_guard lock(state_->mutex);
  return state_->misplaced;
}

std::size_t ThreadNetwork::offered() const {
  const std::lock_guard lock(state_->mutex);
  return state_->offers.size();
}

void ThreadNetwork::hold() {
  const std::lock_guard lock(state_->mutex);
  state_->held = true;
}

std::unique_ptr<tutti::Wire> ThreadNetwork::open(bool reaches_gpus) {
  const std::lock_guard lock(state_->mutex);
  const Bytes address = to_bytes(view_of(++state_->opened));
  state_->inboxes[address];
  return std::make_unique<ThreadWire>(state_, address, reaches_gpus);
}

void ThreadNetwork::inject(ByteView address, ByteView header, ByteView payload) {
  const std::lock_guard lock(state_->mutex);
  state_->inboxes.at(to_bytes(address)).letters.push_back({to_bytes(header), to_bytes(payload)});
  state_->changed.notify_all();
}

}  // namespace tutti::test
