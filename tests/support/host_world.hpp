// The memory of a few ranks in one process as bodies see it, without a communicator around it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/units.hpp"
#include "device/kernel_args.hpp"
#include "support/patience.hpp"

namespace tutti::test {

class HostWorld {
 public:
  HostWorld(int ranks, std::size_t buffer_bytes, std::size_t staging_bytes = 4096)
      : slot_bytes_(round_up(buffer_bytes, 2048)),
        staging_bytes_(staging_bytes),
        ranks_(static_cast<std::size_t>(ranks)) {
    for (RankMemory& memory : ranks_) {
      memory.channel = std::make_unique<ChannelMemory>();
      memory.packets.resize((sizeof(PacketMemory) + kPacketGenerations * generation_bytes()) /
                            sizeof(std::uint64_t));
      memory.staging.resize(staging_bytes / sizeof(double));
      memory.input.resize(buffer_bytes / sizeof(double) + 1);
      memory.output.resize(buffer_bytes / sizeof(double) + 1);
      memory.epochs.resize(kMaxBlocks);
      memory.control.timeout_ns = std::chrono::nanoseconds(kPatience).count();
    }
  }

  int ranks() const { return static_cast<int>(ranks_.size()); }

  template <class T>
  T* input(int rank) {
    return reinterpret_cast<T*>(at(rank).input.data());
  }
  template <class T>
  T* output(int rank) {
    return reinterpret_cast<T*>(at(rank).output.data());
  }
  FailureRecord& failure(int rank) { return at(rank).failure; }
  std::uint32_t& notices(int rank) { return at(rank).notices; }
  Control& control(int rank) { return at(rank).control; }

  // An operation of rank `rank` on its input and output.
  KernelArgs work(int rank, std::size_t count, bool staged) {
    KernelArgs work{};
    work.count = count;
    work.rank = rank;
    work.ranks = ranks();
    work.blocks = 1;
    work.signature = 0x1234;
    work.sequence = 1;
    work.input = input<std::byte>(rank);
    work.output = output<std::byte>(rank);
    work.stage_input = work.stage_output = staged;
    work.staging_bytes = staging_bytes_;
    for (int r = 0; r < ranks(); ++r) {
      const int next = (rank + 1 + r) % ranks();
      work.packets.memory.at[r] = reinterpret_cast<std::byte*>(at(next).packets.data());
      work.channels.at[r] = reinterpret_cast<std::byte*>(at(r).channel.get());
      work.staging.at[r] = reinterpret_cast<std::byte*>(at(r).staging.data());
      work.inputs.at[r] = input<std::byte>(r);
    }
    for (int r = 0; r < ranks(); ++r) {
      const int next = (rank + 1 + r) % ranks();
      work.outputs.at[r] = staged ? work.staging.at[next] : output<std::byte>(next);
    }
    work.packets.generation_bytes = generation_bytes();
    work.packets.slot_bytes = slot_bytes_;
    work.packets.launches = &at(rank).launches;
    work.epochs = at(rank).epochs.data();
    work.control = &at(rank).control;
    work.failure = &at(rank).failure;
    work.notices = &at(rank).notices;
    work.divisor = 1;
    return work;
  }

 private:
  struct RankMemory {
    std::unique_ptr<ChannelMemory> channel;
    std::vector<double> staging, input, output;
    std::vector<std::uint64_t> packets, epochs;
    std::uint64_t launches = 0;
    Control control{};
    FailureRecord failure{};
    std::uint32_t notices = 0;
  };
  RankMemory& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  // Of packets: two parts, each with a slot per rank that holds a whole buffer.
  std::size_t generation_bytes() const { return 2 * ranks_.size() * slot_bytes_; }

  std::size_t slot_bytes_, staging_bytes_;
  std::vector<RankMemory> ranks_;
};

}  // namespace tutti::test
