// Collectives joined with a matmul, on GPUs: several calls without a pause, and replays of a graph.
#include <fmt/format.h>

#include <vector>

#include "base/convert.hpp"
#include "base/units.hpp"
#include "conformance/gpu/gpu_tests.hpp"
#include "drivers/cuda.hpp"
#include "support/cuda_graph.hpp"
#include "tutti/tutti.hpp"

namespace tutti::test {
namespace {

constexpr std::chrono::milliseconds kPatient{10000};

struct Shape {
  std::size_t m, n, k;
  DataType dtype;
  MatrixLayout layout;
  bool symmetric, gathered;
};
// Sums of up to 64 products of integers from -2 to 2 are exact in every type.
constexpr Shape kShapes[] = {
    {1024, 256, 64, DataType::kBfloat16, MatrixLayout::kColumnMajor, false, false},
    {1024, 256, 64, DataType::kFloat16, MatrixLayout::kRowMajor, true, true},
    {1001, 120, 64, DataType::kBfloat16, MatrixLayout::kRowMajor, true, false},
    {130, 72, 40, DataType::kFloat32, MatrixLayout::kColumnMajor, false, true},
    {1, 8, 8, DataType::kBfloat16, MatrixLayout::kRowMajor, false, true},
};

int number(std::size_t x, std::size_t y, std::size_t round) {
  const std::uint64_t mixed = ((x * 1009 + y) * 1013 + round) * 0x9e3779b97f4a7c15u;
  return static_cast<int>((mixed >> 40) % 5) - 2;
}

// A matrix without gaps, of number(line, in_line, round).
std::vector<std::byte> matrix(DataType dtype, std::size_t first_line, std::size_t lines,
                              std::size_t length, std::size_t round) {
  std::vector<std::byte> bytes(lines * length * size_of(dtype));
  for (std::size_t i = 0; i < lines * length; ++i) {
    store_element(dtype, &bytes[i * size_of(dtype)],
                  number(first_line + i / length, i % length, round));
  }
  return bytes;
}

// The inputs and C of one call. Where A is gathered is shared by several.
class Layer {
 public:
  Layer(Rank& rank, const Shape& shape, void* target)
      : rank_(rank),
        shape_(shape),
        target_(target),
        a_(rank.device, KiB + rows() * row_bytes()),
        b_(rank.device, shape.k * shape.n * size_of(shape.dtype)),
        c_(rank.device, bytes_of_c()) {}

  void write(std::size_t round) {
    round_ = round;
    put(a_, matrix(shape_.dtype, first(), rows(), shape_.k, round));
    const bool row_major = shape_.layout == MatrixLayout::kRowMajor;
    const std::size_t lines = row_major ? shape_.k : shape_.n;
    put(b_, matrix(shape_.dtype, 0, lines, row_major ? shape_.n : shape_.k, salt()));
    put(c_, std::vector<std::byte>(bytes_of_c(), std::byte{0xff}));
  }
  AllGatherMatmul call(Stream stream) const {
    return {.a = a_.get(),
            .b = b_.get(),
            .c = c_.get(),
            .m = shape_.m,
            .n = shape_.n,
            .k = shape_.k,
            .dtype = shape_.dtype,
            .b_layout = shape_.layout,
            .gathered = shape_.gathered ? target_ : nullptr,
            .workspace = shape_.gathered ? nullptr : target_,
            .workspace_bytes = shape_.m * row_bytes(),
            .stream = stream};
  }
  void check() const {
    std::vector<std::byte> c(bytes_of_c());
    rank_.device.read(c.data(), c_.get(), c.size());
    for (std::size_t i = 0; i < shape_.m * shape_.n; ++i) {
      const std::size_t row = i / shape_.n, column = i % shape_.n;
      const double seen = load_element(shape_.dtype, &c[i * size_of(shape_.dtype)]);
      require(seen == expected(row, column),
              fmt::format("m {}, n {}, k {}, round {}: C[{}, {}] is {} instead of {}", shape_.m,
                          shape_.n, shape_.k, round_, row, column, seen, expected(row, column)));
    }
  }

 private:
  void put(const OwnedMemory& to, const std::vector<std::byte>& bytes) {
    if (!bytes.empty()) rank_.device.write(to.get(), bytes.data(), bytes.size());
  }
  // Every rank has a B of its own.
  std::size_t salt() const { return round_ * 17 + static_cast<std::size_t>(rank_.number()) + 1; }
  double expected(std::size_t row, std::size_t column) const {
    const bool row_major = shape_.layout == MatrixLayout::kRowMajor;
    int sum = 0;
    for (std::size_t k = 0; k < shape_.k; ++k) {
      const int b = row_major ? number(k, column, salt()) : number(column, k, salt());
      sum += number(row, k, round_) * b;
    }
    return sum;
  }
  std::size_t longest() const { return ceil_div(shape_.m, static_cast<std::size_t>(rank_.size())); }
  std::size_t first() const {
    return std::min(shape_.m, static_cast<std::size_t>(rank_.number()) * longest());
  }
  std::size_t rows() const { return std::min(shape_.m - first(), longest()); }
  std::size_t row_bytes() const { return shape_.k * size_of(shape_.dtype); }
  std::size_t bytes_of_c() const { return shape_.m * shape_.n * size_of(shape_.dtype); }

  Rank& rank_;
  const Shape shape_;
  void* const target_;
  std::size_t round_ = 0;
  OwnedMemory a_, b_, c_;
};

constexpr std::size_t kLayers = 4;
constexpr std::size_t kMostBytesOfA = 256 * KiB;

void finish(Rank& rank, const OwnedStream& stream, const std::vector<Layer>& layers) {
  stream.wait();
  require_ok(rank.group.status());
  for (const Layer& layer : layers) layer.check();
}

// `run` enqueues the calls of all layers, which gather into the same memory.
template <class Run>
void with_layers(Rank& rank, const Run& run) {
  const SymmetricMemory symmetric = take(rank.group.allocate(kMostBytesOfA));
  const OwnedMemory plain(rank.device, kMostBytesOfA);
  for (const Shape& shape : kShapes) {
    const OwnedStream stream(rank.device);
    std::vector<Layer> layers;
    layers.reserve(kLayers);
    void* const target = shape.symmetric ? symmetric.data() : plain.get();
    for (std::size_t i = 0; i < kLayers; ++i) layers.emplace_back(rank, shape, target);
    rank.meet();
    run(stream, layers);
    rank.meet_before_freeing();
  }
}

void all_gather_matmuls(Rank& rank) {
  with_layers(rank, [&](const OwnedStream& stream, std::vector<Layer>& layers) {
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i].write(i);
    for (const Layer& layer : layers) {
      require_ok(all_gather_matmul(rank.group, layer.call(stream.get())));
    }
    finish(rank, stream, layers);
  });
}

void all_gather_matmuls_in_graphs(Rank& rank) {
  with_layers(rank, [&](const OwnedStream& stream, std::vector<Layer>& layers) {
    const auto run = [&] {
      for (const Layer& layer : layers) {
        require_ok(all_gather_matmul(rank.group, layer.call(stream.get())));
      }
    };
    (void)take(plan(rank.group, layers.front().call(stream.get())));
    const CapturedGraph graph(*rank.device.cuda(), stream.get(), run);
    graph.instantiate(rank);
    for (std::size_t replay = 1; replay <= 10; ++replay) {
      for (std::size_t i = 0; i < layers.size(); ++i) layers[i].write(replay * kLayers + i);
      rank.meet();
      graph.launch(stream.get());
      finish(rank, stream, layers);
    }
  });
}

constexpr Scenario kAllGatherMatmuls[] = {
    {"all_gather_matmuls", 1, kPatient, all_gather_matmuls},
    {"all_gather_matmuls_in_graphs", 1, kPatient, all_gather_matmuls_in_graphs},
};

}  // namespace

std::span<const Scenario> all_gather_matmuls() { return kAllGatherMatmuls; }

}  // namespace tutti::test
