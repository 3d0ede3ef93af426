// What the benches of other libraries between hosts share: their options, their loop, their output.
// It times an all_reduce of fp32 sums as `tutti bench` does: ranks start each sample together, and
// contenders take turns (A B A B).
//
// Options: --bytes N[,...], --samples N, --warmup N and --seconds S, which limits a contender at
// one size: fewer samples than asked for, but at least 3. Each rank prints, for each contender and
// size,
//   row NAME BYTES RANK WRONG SENT_BYTES BUSY_TICKS ALL_TICKS US,US,...
// WRONG counts elements; SENT_BYTES is per sample, of this rank's host, barriers included. Ticks
// are of this host's cores. tools/cluster/campaign makes results of these lines.
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
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/host_use.hpp"

namespace network_peer {

struct Options {
  std::vector<std::size_t> bytes = {};
  std::size_t samples = 10, warmup = 2;
  double seconds = 1e9;
};

struct World {
  int rank = 0, ranks = 1;
  std::function<double(double)> maximum;  // over all ranks, which leave it together
};

struct Contender {
  std::string name;
  std::function<void(const float* input, float* output, std::size_t count)> all_reduce;
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

class Bench {
 public:
  Bench(World world, std::span<const Contender> contenders, std::size_t bytes)
      : world_(std::move(world)),
        contenders_(contenders),
        input_(bytes / sizeof(float)),
        output_(input_.size()),
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
    for (std::size_t i = 0; i < input_.size(); ++i) {
      input_[i] = input_value(world_.rank, i, iteration);
    }
    expected_.assign(kPeriod, 0);
    for (int rank = 0; rank < world_.ranks; ++rank) {
      for (std::size_t i = 0; i < kPeriod; ++i) expected_[i] += input_value(rank, i, iteration);
    }
  }

  void round(bool check) {
    for (std::size_t c = 0; c < contenders_.size(); ++c) sample(c, check);
  }

  void sample(std::size_t which, bool check) {
    const auto nan = std::numeric_limits<float>::quiet_NaN();
    if (check) std::fill(output_.begin(), output_.end(), nan);
    const auto before = tutti::cli::host_use_now();
    world_.maximum(0);
    const auto start = std::chrono::steady_clock::now();
    contenders_[which].all_reduce(input_.data(), output_.data(), input_.size());
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    world_.maximum(0);
    Samples& own = samples_[which];
    own.use += tutti::cli::host_use_now() - before;
    own.us.push_back(time.count());
    for (std::size_t i = 0; check && i < output_.size(); ++i) {
      if (output_[i] != expected_[i % kPeriod]) ++own.wrong;
    }
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
  std::vector<float> input_, output_;
  std::vector<float> expected_;  // a period
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

// The exit status of the program: whether all results were right.
inline int run(const World& world, std::span<const Contender> contenders, const Options& options) {
  std::size_t wrong = 0;
  for (const std::size_t bytes : options.bytes) {
    Bench bench(world, contenders, bytes);
    const std::vector<Samples>& samples = bench.run(options);
    for (std::size_t c = 0; c < contenders.size(); ++c) {
      print(contenders[c].name, bytes, world.rank, samples[c]);
      wrong += samples[c].wrong;
    }
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace network_peer
