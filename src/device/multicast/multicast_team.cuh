// The NVLink team, and what a switch does for it where the ranks' buffers are bound to a multicast
// object. In builds without TUTTI_MULTICAST it is the NVLink team alone.
#pragma once

#include "device/nvlink_peer/nvlink_team.cuh"
#if TUTTI_MULTICAST
#include "device/multicast/switch_memory.cuh"
#endif

namespace tutti {

template <class Protocol>
class BasicMulticastTeam : public NvlinkTeam<Protocol> {
  using Base = NvlinkTeam<Protocol>;

 public:
  __device__ explicit BasicMulticastTeam(const KernelArgs& work) : Base(work) {}

#if TUTTI_MULTICAST
  static constexpr bool kHasMulticast = true;

  // The same in all threads, and on all ranks.
  __device__ bool has_multicast_input() const { return pointers().input != nullptr; }
  __device__ bool has_multicast_output() const { return pointers().output != nullptr; }

  template <class T, SwitchOp kOp>
  __device__ auto load_reduce(TileAt at) const {
    using Value = Tile<T, Base::template tile_elements<T>()>;
    const std::byte* from = pointers().input + at.first * sizeof(T);
    return __builtin_bit_cast(Value, SwitchMemory<T, kOp>::load_reduce(from));
  }

  template <class T>
  __device__ void store_multicast(TileAt at,
                                  const Tile<T, Base::template tile_elements<T>()>& value) const {
    store_vector_multicast(pointers().output + at.first * sizeof(T),
                           __builtin_bit_cast(uint4, value));
  }

  // The same memory is reached by two addresses, the rank's own and that of all.
  __device__ void arrive(Publish publish) {
    fence_between_addresses();
    if (this->work_.multicast_channel == nullptr) return Base::arrive(publish);
    // One store tells all ranks.
    Base::arrive_by(publish, 1, [&](int, const Flag& flag) {
      auto* const channels = reinterpret_cast<ChannelMemory*>(this->work_.multicast_channel);
      store_vector_multicast(
          reinterpret_cast<std::byte*>(&channels->flags[blockIdx.x][this->work_.rank]),
          __builtin_bit_cast(uint4, flag));
    });
  }
  __device__ Outcome wait() {
    const Outcome waited = Base::wait();
    fence_between_addresses();
    return waited;
  }
  __device__ Outcome barrier(Publish publish) {
    arrive(publish);
    return wait();
  }

 private:
  __device__ const MulticastPointers& pointers() const {
    const KernelArgs& work = this->work_;
    return work.late != nullptr ? work.late->multicast : work.multicast;
  }
#endif
};

using MulticastTeam = BasicMulticastTeam<ProductionProtocol>;

}  // namespace tutti
