#include "fakes/thread_wire.hpp"

#include <utility>
#include <vector>

namespace tutti::test {

struct ThreadNetwork::State {
  struct Letter {
    Bytes header, payload;
  };
  struct Inbox {
    std::deque<Letter> letters;
    bool woken = false;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Bytes, Inbox> inboxes;
  std::uint64_t opened = 0;
};

namespace {

class ThreadWire final : public tutti::Wire {
 public:
  ThreadWire(std::shared_ptr<ThreadNetwork::State> network, Bytes address)
      : network_(std::move(network)), address_(std::move(address)) {}
  ~ThreadWire() override {
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
    const auto found = network_->inboxes.find(peers_.at(peer));
    if (found != network_->inboxes.end()) {
      found->second.letters.push_back({to_bytes(header), to_bytes(payload)});
      network_->changed.notify_all();
    }
    sent_.push_back(++last_);
    return last_;
  }

  bool progress() override {
    bool any = !sent_.empty();
    for (const WireTicket ticket : std::exchange(sent_, {})) {
      if (handlers_.sent) handlers_.sent(ticket);
    }
    for (auto& letter : take_letters()) {
      any = true;
      if (handlers_.arrived) handlers_.arrived(letter.header, letter.payload);
    }
    return any;
  }

  void sleep(Clock::time_point until) override {
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
  void cancel_all() override { sent_.clear(); }
  std::string text() const override { return "threads"; }

 private:
  std::deque<ThreadNetwork::State::Letter> take_letters() {
    const std::lock_guard lock(network_->mutex);
    return std::exchange(network_->inboxes[address_].letters, {});
  }

  const std::shared_ptr<ThreadNetwork::State> network_;
  const Bytes address_;
  std::map<int, Bytes> peers_;
  Handlers handlers_;
  std::vector<WireTicket> sent_;
  WireTicket last_ = 0;
};

}  // namespace

ThreadNetwork::ThreadNetwork() : state_(std::make_shared<State>()) {}
ThreadNetwork::~ThreadNetwork() = default;

std::unique_ptr<tutti::Wire> ThreadNetwork::open() {
  const std::lock_guard lock(state_->mutex);
  const Bytes address = to_bytes(view_of(++state_->opened));
  state_->inboxes[address];
  return std::make_unique<ThreadWire>(state_, address);
}

void ThreadNetwork::inject(ByteView address, ByteView header, ByteView payload) {
  const std::lock_guard lock(state_->mutex);
  state_->inboxes.at(to_bytes(address)).letters.push_back({to_bytes(header), to_bytes(payload)});
  state_->changed.notify_all();
}

}  // namespace tutti::test
