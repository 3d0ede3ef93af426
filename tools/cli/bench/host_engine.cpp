#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "base/try.hpp"
#include "base/units.hpp"
#include "bench/engine.hpp"
#include "bench/inputs.hpp"

namespace tutti::cli {
namespace {

constexpr std::size_t kAlignment = 4096;

std::size_t last_level_cache_bytes() {
  const long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::max(bytes > 0 ? static_cast<std::size_t>(bytes) : 0, 16 * MiB);
}

class HostEngine : public Engine {
 public:
  HostEngine(Communicator& communicator, SymmetricMemory barrier, bool cold)
      : communicator_(communicator),
        barrier_(std::move(barrier)),
        flush_(cold ? 2 * last_level_cache_bytes() : 0) {}

  Result<std::shared_ptr<std::byte>> allocate(std::size_t bytes) override {
    auto* memory = static_cast<std::byte*>(::operator new (
        std::max<std::size_t>(bytes, 1), std::align_val_t{kAlignment}, std::nothrow));
    if (memory == nullptr) return Status(StatusCode::kResourceExhausted, "out of memory");
    return std::shared_ptr<std::byte>(
        memory, [](std::byte* at) { ::operator delete (at, std::align_val_t{kAlignment}); });
  }

  Status write(std::byte* to, ByteView from) override {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    return Status::ok();
  }

  Status read(std::span<std::byte> to, const std::byte* from) override {
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
    return Status::ok();
  }

  Status prepare(Contender&) override { return Status::ok(); }

  Status sample(std::span<Contender* const> contenders, int rounds, bool poison) override {
    for (int round = 0; round < rounds; ++round) {
      for (Contender* contender : contenders) {
        if (poison) fill_outputs(*contender);
        std::fill(flush_.begin(), flush_.end(), static_cast<std::byte>(round));
        const HostUse before = between_nodes() ? host_use_now() : HostUse();
        TUTTI_TRY(align());
        TUTTI_TRY(time_once(*contender));
        if (!between_nodes()) continue;
        TUTTI_TRY(align());  // all that was sent has arrived
        contender->use += host_use_now() - before;
      }
    }
    return Status::ok();
  }

  int rounds_at_once() const override { return 1; }
  std::size_t cache_bytes() const override { return last_level_cache_bytes(); }

 private:
  static void fill_outputs(const Contender& contender) {
    for (const auto& output : contender.outputs) {
      std::fill(output.begin(), output.end(), std::byte{kPoison});
    }
  }

  bool between_nodes() const { return !barrier_; }

  // An all-reduce of one element ends when every rank has begun it.
  Status align() {
    void* const at = barrier_ ? barrier_.data() : &plain_barrier_;
    return all_reduce(communicator_, {.input = at, .output = at, .count = 1});
  }

  Status time_once(Contender& contender) {
    const auto start = std::chrono::steady_clock::now();
    for (const Operation& operation : contender.operations) {
      TUTTI_TRY(run(communicator_, operation));
    }
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    contender.samples_us.push_back(time.count() / static_cast<double>(contender.operations.size()));
    return Status::ok();
  }

  Communicator& communicator_;
  SymmetricMemory barrier_;  // none between nodes
  float plain_barrier_ = 0;
  std::vector<std::byte> flush_;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_host_engine(Communicator& communicator,
                                                 const BenchOptions& options) {
  auto barrier = communicator.allocate(sizeof(float));
  if (barrier.status().code() == StatusCode::kUnavailable) barrier = SymmetricMemory();
  TUTTI_TRY(barrier.status());
  return std::unique_ptr<Engine>(std::make_unique<HostEngine>(
      communicator, std::move(barrier).value(), options.cache == Cache::kCold));
}

}  // namespace tutti::cli
