// What a rank of an experiment has, and what its matrices hold.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "laboratory/experiment.hpp"
#include "operation/lengths.hpp"

namespace tutti::laboratory {

inline constexpr std::size_t kRingBytes = 2 * kStagingBytes;  // all of staging
inline constexpr std::size_t kCanaryWords = 8;                // before and behind each buffer
inline constexpr float kCanary = 12345.5f;
inline constexpr float kPoison = -98765.5f;
inline constexpr float kEpsilon = 0.5F;

// Weights repeat from token to token, and differ.
inline float weight_at(std::size_t i) { return 0.5F + static_cast<float>(i % 5); }
inline float residual_at(int operation, std::size_t i) {
  return static_cast<float>((static_cast<std::size_t>(operation) * 11 + 3 * i) % 17) - 8;
}

// A buffer between two canaries.
class Guarded {
 public:
  explicit Guarded(std::size_t words) : words_(words), all_(words + 2 * kCanaryWords) { clear(); }
  void clear() {
    std::fill(all_.begin(), all_.end(), kCanary);
    std::fill_n(data(), words_, kPoison);
  }
  float* data() { return all_.data() + kCanaryWords; }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(data()); }
  std::size_t words() const { return words_; }
  std::size_t size_bytes() const { return words_ * sizeof(float); }
  bool intact() const {
    const auto is_canary = [](float x) { return x == kCanary; };
    const auto tail = static_cast<std::ptrdiff_t>(kCanaryWords + words_);
    return std::all_of(all_.begin(), all_.begin() + kCanaryWords, is_canary) &&
           std::all_of(all_.begin() + tail, all_.end(), is_canary);
  }

 private:
  std::size_t words_;
  std::vector<float> all_;
};

struct Experiment::Rank {
  Rank(const Sides& sides, std::size_t generation_bytes)
      : input(sides.input),
        output(sides.output),
        residual(sides.output),
        normalised(sides.output),
        weight(kMostHidden),
        staging(kRingBytes / sizeof(float)),
        packets((sizeof(PacketMemory) + kPacketGenerations * generation_bytes) / 8) {}

  static constexpr std::size_t kMostHidden = 12;

  Guarded input, output, residual, normalised, weight, staging;
  std::vector<std::uint64_t> packets;  // PacketMemory, and slots
  std::uint64_t launches = 0;
  ChannelMemory channel{};
  std::array<std::uint64_t, kMaxBlocks> epochs{};
  Control control{};
  FailureRecord failure{};
  std::uint32_t notices = 0;
  PieceCounts counts{};  // of the operation that it is in
  std::array<std::size_t, kMaxRanks> given{}, found{};
  int ended = 0;     // blocks that have ended the current operation
  int started = 0;   // operations
  int followed = 0;  // of these, those whose second kernel may begin
  // When the stopped rank was woken.
  std::vector<float> output_then, staging_then;
  std::vector<std::uint64_t> epochs_then, packets_then;

  std::vector<float> output_now() { return {output.data(), output.data() + output.words()}; }
  std::vector<float> staging_now() { return {staging.data(), staging.data() + staging.words()}; }
  // What its flags say of every peer.
  std::vector<std::uint64_t> epochs_now(int blocks) const {
    std::vector<std::uint64_t> told;
    for (int b = 0; b < blocks; ++b) {
      for (const Flag& flag : channel.flags[b]) told.push_back(flag.epoch);
    }
    return told;
  }
};

}  // namespace tutti::laboratory
