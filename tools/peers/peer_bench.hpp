// What the benches of other libraries share: their options, their loop, their output. It times a
// collective of fp32 as `tutti bench` does: ranks start each sample together, and contenders take
// turns (A B A B). Results are checked, exactly.
//
// Options: --bytes N[,...], --samples N, --warmup N and --seconds S, which limits a contender at
// one size: fewer samples than asked for, but at least 3. Each rank prints, for each contender and
// size,
//   row NAME BYTES RANK WRONG SENT_BYTES BUSY_TICKS ALL_TICKS US,US,...
// WRONG counts elements; SENT_BYTES is per sample, of this rank's host, barriers included. Ticks
// are of this host's cores. On one host these three are 0: reading them would disturb the samples.
// tools/cluster/campaign and tools/peers/host_campaign make results of these lines.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/host_use.hpp"

namespace peer_bench {

struct Options {
  std::vector<std::size_t> bytes = {};
  std::size_t samples = 10, warmup = 2;
  double seconds = 1e9;
};

struct World {
  int rank = 0, ranks = 1;
  bool one_host = false;
  std::function<double(double)> maximum;  // over all ranks, which leave it together
};

// `count`: elements of the input.
struct Contender {
  std::string name;
  std::function<void(const float* input, float* output, std::size_t count)> run;
};

// A part of an output: what a rank's input has from `first` on, or the sum of all ranks' there.
struct Part {
  int source = 0;
  std::size_t first = 0, count = 0;
};
constexpr int kSum = -1;

// What a rank gives, in elements, and what it gets: one part behind the other.
struct Shape {
  std::size_t input = 0;
  std::vector<Part> output = {};
};

struct Samples {
  std::vector<double> us = {};
  std::size_t wrong = 0;
  tutti::cli::HostUse use = {};
};

inline Options parse(int count, char** words) {
  Options options;
  for (int k = 1; k + 1 < count; k += 2) {
    const std::string_view name = words[k];
    if (name == "--bytes") {
      std::istringstream sizes(words[k + 1]);
      for (std::string size; std::getline(sizes, size, ',');) {
        options.bytes.push_back(std::strtoull(size.c_str(), nullptr, 10));
      }
    } else if (name == "--samples") {
      options.samples = std::strtoull(words[k + 1], nullptr, 10);
    } else if (name == "--warmup") {
      options.warmup = std::strtoull(words[k + 1], nullptr, 10);
    } else if (name == "--seconds") {
      options.seconds = std::strtod(words[k + 1], nullptr);
    }
  }
  return options;
}

constexpr int kPeriod = 1021;  // prime, so that a part at a wrong place is seen

inline float input_value(int rank, std::size_t at, int iteration) {
  const int place = static_cast<int>(at % kPeriod);
  return static_cast<float>((place * (rank + 1) + iteration) % kPeriod);
}

// Pages of its own, as `tutti bench` gives its plain buffers.
class Buffer {
 public:
  explicit Buffer(std::size_t count)
      : data_(static_cast<float*>(
            ::operator new(std::max<std::size_t>(count, 1) * sizeof(float), kPage))),
        count_(count) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ::operator delete(data_, kPage); }

  std::span<float> all() { return {data_, count_}; }

 private:
  static constexpr std::align_val_t kPage{4096};
  float* data_;
  std::size_t count_;
};

class Bench {
 public:
  Bench(World world, std::span<const Contender> contenders, Shape shape)
      : world_(std::move(world)),
        contenders_(contenders),
        shape_(std::move(shape)),
        input_(shape_.input),
        output_(
            std::accumulate(shape_.output.begin(), shape_.output.end(), std::size_t{0},
                            [](std::size_t sum, const Part& part) { return sum + part.count; })),
        samples_(contenders.size()) {}

  const std::vector<Samples>& run(const Options& options) {
    fill(0);
    for (std::size_t k = 0; k < options.warmup; ++k) round(false);
    for (Samples& each : samples_) each = {};
    round(true);
    const std::vector<std::size_t> wanted = affordable(options);
    const std::size_t most = *std::max_element(wanted.begin(), wanted.end());
    for (std::size_t k = 1; k < most; ++k) {
      const bool last = k + 1 == most;
      if (last) fill(1);  // what is left over cannot pass
      for (std::size_t c = 0; c < contenders_.size(); ++c) {
        if (k < wanted[c] || last) sample(c, last);
      }
    }
    return samples_;
  }

 private:
  void fill(int iteration) {
    iteration_ = iteration;
    const std::span<float> input = input_.all();
    for (std::size_t i = 0; i < input.size(); ++i) {
      input[i] = input_value(world_.rank, i, iteration);
    }
    sums_.assign(kPeriod, 0);
    for (int rank = 0; rank < world_.ranks; ++rank) {
      for (std::size_t i = 0; i < kPeriod; ++i) sums_[i] += input_value(rank, i, iteration);
    }
  }

  void round(bool check) {
    for (std::size_t c = 0; c < contenders_.size(); ++c) sample(c, check);
  }

  void sample(std::size_t which, bool check) {
    const std::span<float> output = output_.all();
    const auto nan = std::numeric_limits<float>::quiet_NaN();
    if (check) std::fill(output.begin(), output.end(), nan);
    const auto before = used();
    world_.maximum(0);
    const auto start = std::chrono::steady_clock::now();
    contenders_[which].run(input_.all().data(), output.data(), shape_.input);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (!world_.one_host) world_.maximum(0);  // all that was sent has arrived
    Samples& own = samples_[which];
    own.use += used() - before;
    own.us.push_back(time.count());
    if (check) own.wrong += wrong();
  }

  tutti::cli::HostUse used() const {
    return world_.one_host ? tutti::cli::HostUse() : tutti::cli::host_use_now();
  }

  std::size_t wrong() {
    std::size_t count = 0;
    const float* got = output_.all().data();
    for (const Part& part : shape_.output) {
      for (std::size_t at = part.first; at < part.first + part.count; ++at) {
        const float expected =
            part.source == kSum ? sums_[at % kPeriod] : input_value(part.source, at, iteration_);
        if (*got++ != expected) ++count;
      }
    }
    return count;
  }

  // The same on all ranks.
  std::vector<std::size_t> affordable(const Options& options) const {
    std::vector<std::size_t> wanted;
    for (const Samples& each : samples_) {
      const double first = world_.maximum(each.us.front()) * 1e-6;
      const double count = std::clamp(options.seconds / first, 3.0, 1e6);
      wanted.push_back(std::min(options.samples, static_cast<std::size_t>(count)));
    }
    return wanted;
  }

  World world_;
  std::span<const Contender> contenders_;
  Shape shape_;
  Buffer input_, output_;
  std::vector<float> sums_;  // a period
  int iteration_ = 0;
  std::vector<Samples> samples_;
};

inline void print(const std::string& name, std::size_t bytes, int rank, const Samples& samples) {
  std::ostringstream line;
  const auto sent = samples.use.sent_bytes / std::max<std::size_t>(samples.us.size(), 1);
  line << "row " << name << ' ' << bytes << ' ' << rank << ' ' << samples.wrong << ' ' << sent
       << ' ' << samples.use.busy_ticks << ' ' << samples.use.all_ticks << ' ';
  for (std::size_t k = 0; k < samples.us.size(); ++k) line << (k > 0 ? "," : "") << samples.us[k];
  std::printf("%s\n", line.str().c_str());
  std::fflush(stdout);
}

// Prints the rows of one size. Returns how many elements were wrong.
inline std::size_t run_size(const World& world, std::span<const Contender> contenders,
                            const Options& options, std::size_t bytes, Shape shape) {
  std::size_t wrong = 0;
  Bench bench(world, contenders, std::move(shape));
  const std::vector<Samples>& samples = bench.run(options);
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    print(contenders[c].name, bytes, world.rank, samples[c]);
    wrong += samples[c].wrong;
  }
  return wrong;
}

// Of all_reduce. The exit status of the program: whether all results were right.
inline int run(const World& world, std::span<const Contender> contenders, const Options& options) {
  std::size_t wrong = 0;
  for (const std::size_t bytes : options.bytes) {
    const std::size_t count = bytes / sizeof(float);
    wrong += run_size(world, contenders, options, bytes, {count, {{kSum, 0, count}}});
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace peer_bench
