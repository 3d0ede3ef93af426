#include <atomic>
#include <vector>

#include "executors/peer/address_exchange.hpp"
#include "executors/peer/engine.hpp"
#include "executors/peer/host.hpp"

namespace tutti {
namespace {

class HostEngine : public Engine {
 public:
  HostEngine(const EngineSizes& sizes, const ProtocolMutation* weakening, std::uint64_t* waits_for)
      : epochs_(static_cast<std::size_t>(sizes.channels) * kMaxBlocks),
        weakening_(weakening),
        waits_for_(waits_for) {
    control_.timeout_ns = sizes.timeout_ns;
    memory_ = {.epochs = epochs_.data(),
               .launches = launches_,
               .messages = messages_.data(),
               .windows = windows_.data(),
               .control = &control_,
               .late = nullptr,
               .signals = &signals_,
               .failure = &failure_,
               .notices = &notices_};
  }

  Status run(const Operation& operation, const KernelArgs& work, const Start& start) override {
    if (!start.by_address) return run(operation, work);
    KernelArgs addressed = work;
    AddressExchange exchange(addressed, ++exchanges_);
    if (exchange.meet(weakening_, waits_for_) != Outcome::kDone) return Status::ok();
    return run(operation, addressed);
  }

  Status run(const Operation& operation, const KernelArgs& work) {
    const Algorithm& row = *operation.row;
    const auto run = [&](HostBody body) { return run_on_host(body, work, weakening_, waits_for_); };
    if (run(row.host(operation.dtype, operation.op)) != Outcome::kDone) return Status::ok();
    if (row.then.host != nullptr) (void)run(row.then.host(operation.dtype, operation.op));
    return Status::ok();
  }

  Status run(const OneSidedWork& work, Mover, Stream) override {
    (void)run_one_sided(work, device::Block());
    return Status::ok();
  }

  Status fill_late(int, const DeferredBuffers&) override { return Status::ok(); }
  Status fill_window(std::uint32_t index, const RegistrationEntry& window) override {
    windows_[index] = window;
    return Status::ok();
  }
  Status set_timeout(std::uint64_t timeout_ns) override {
    std::atomic_ref(control_.timeout_ns).store(timeout_ns, std::memory_order_relaxed);
    return Status::ok();
  }
  void poison() override {
    std::atomic_ref(control_.poison).fetch_or(Control::kTold, std::memory_order_relaxed);
  }
  bool drain(std::uint64_t) override { return true; }

 private:
  std::vector<std::uint64_t> epochs_;
  std::uint64_t launches_[Layout::kMaxPacketAreas] = {};
  std::vector<MessageCounts> messages_ = std::vector<MessageCounts>(kMessageCounts);
  std::vector<RegistrationEntry> windows_ = std::vector<RegistrationEntry>(kRegistrationEntries);
  device::impl::SignalCounters signals_{};
  Control control_{};
  FailureRecord failure_{};
  std::uint32_t notices_ = 0;
  std::uint64_t exchanges_ = 0;  // of addresses; each rank counts the same ones
  const ProtocolMutation* weakening_;
  std::uint64_t* waits_for_;
};

}  // namespace

std::unique_ptr<Engine> make_host_engine(const EngineSizes& sizes,
                                         const ProtocolMutation* weakening,
                                         std::uint64_t* waits_for) {
  return std::make_unique<HostEngine>(sizes, weakening, waits_for);
}

}  // namespace tutti
