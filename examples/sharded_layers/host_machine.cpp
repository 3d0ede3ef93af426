#include <algorithm>
#include <deque>

#include "machine.hpp"

namespace {

class HostMachine final : public Machine {
 public:
  tutti::DataType dtype() const override { return tutti::DataType::kFloat32; }
  tutti::Stream stream() const override { return nullptr; }
  void* allocate(std::size_t elements) override { return memory_.emplace_back(elements).data(); }
  void write(void* to, const std::vector<float>& values) override {
    std::copy(values.begin(), values.end(), static_cast<float*>(to));
  }
  std::vector<float> read(const void* from, std::size_t elements) override {
    const auto* first = static_cast<const float*>(from);
    return {first, first + elements};
  }
  void multiply(const Product& p) override {
    const auto* a = static_cast<const float*>(p.a);
    const auto* b = static_cast<const float*>(p.b);
    auto* c = static_cast<float*>(p.c);
    if (!p.add) std::fill_n(c, p.m * p.n, 0.0F);
    for (std::size_t i = 0; i < p.m; ++i) {
      for (std::size_t l = 0; l < p.k; ++l) {
        const float left = p.a_transposed ? a[l * p.m + i] : a[i * p.k + l];
        for (std::size_t j = 0; j < p.n; ++j) {
          c[i * p.n + j] += left * (p.b_transposed ? b[j * p.k + l] : b[l * p.n + j]);
        }
      }
    }
  }
  void wait() override {}

 private:
  std::deque<std::vector<float>> memory_;
};

}  // namespace

std::unique_ptr<Machine> make_host_machine() { return std::make_unique<HostMachine>(); }
