#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <new>

#include "base/try.hpp"
#include "bench/matmul/device.hpp"

namespace tutti::cli {
namespace {

constexpr std::align_val_t kPage{4096};

class HostMatmulDevice final : public MatmulDevice {
 public:
  explicit HostMatmulDevice(const MatmulLaunch& launch) : launch_(launch) {}

  Result<std::shared_ptr<std::byte>> allocate(std::size_t bytes) override {
    auto* memory = static_cast<std::byte*>(::operator new(bytes, kPage, std::nothrow));
    if (memory == nullptr) return Status(StatusCode::kResourceExhausted, "out of memory");
    return std::shared_ptr<std::byte>(memory, [](std::byte* at) { ::operator delete(at, kPage); });
  }

  Status copy(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
    return Status::ok();
  }

  Status fill(std::byte* at, std::uint8_t value, std::size_t bytes) override {
    std::memset(at, value, bytes);
    return Status::ok();
  }

  std::size_t rotated_bytes() const override { return 0; }

  Result<bool> agreed(bool mine) override {
    return launch_.ranks == nullptr ? mine : agreed_by(*launch_.ranks, mine);
  }

  Status prepare(MatmulArm& arm, std::size_t sets) override {
    arm.operations = 1;
    TUTTI_TRY(time_of(arm).status());  // loads the library
    if (launch_.calls > 0) {
      arm.operations = operations_of_calls(launch_.calls, sets);
      return Status::ok();
    }
    TUTTI_ASSIGN(const double time, time_of(arm));
    arm.operations = operations_for(time, sets);
    return Status::ok();
  }

  Status sample(std::span<MatmulArm* const> arms, int rounds) override {
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t k = 0; k < arms.size(); ++k) {
        MatmulArm& arm = *arms[round % 2 == 0 ? k : arms.size() - 1 - k];
        if (launch_.ranks != nullptr) TUTTI_TRY(launch_.ranks->align(nullptr));
        TUTTI_ASSIGN(const double time, time_of(arm));
        arm.samples_us.push_back(time);
      }
    }
    return Status::ok();
  }

 private:
  static Result<double> time_of(const MatmulArm& arm) {
    const auto start = std::chrono::steady_clock::now();
    if (arm.begin) TUTTI_TRY(arm.begin(nullptr));
    for (int k = 0; k < arm.operations; ++k) TUTTI_TRY(arm.run(0, nullptr));
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    return time.count() / arm.operations;
  }

  const MatmulLaunch launch_;
};

}  // namespace

std::unique_ptr<MatmulDevice> make_host_matmul_device(const MatmulLaunch& launch) {
  return std::make_unique<HostMatmulDevice>(launch);
}

int operations_for(double microseconds, std::size_t sets) {
  constexpr double kSample = 2500, kMost = 1 << 14;  // microseconds, operations
  const double wanted = std::clamp(kSample / std::max(microseconds, 0.1), 1.0, kMost);
  const auto each = static_cast<double>(sets);
  return static_cast<int>(std::ceil(wanted / each) * each);
}

int operations_of_calls(int calls, std::size_t sets) {
  const auto each = static_cast<int>(sets);
  return (calls + each - 1) / each * each;
}

Result<bool> agreed_by(MatmulRanks& ranks, bool mine) {
  TUTTI_ASSIGN(const std::vector<std::string> all, ranks.exchange(mine ? "yes" : "no"));
  return all.front() == "yes";
}

}  // namespace tutti::cli
