// What teams on GPUs do in own memory: tiles of any buffer, and the verbs of bodies that work on
// whole tokens.
#pragma once

#include "transport/nvlink_peer/block_sum.cuh"
#include "transport/nvlink_peer/waits.cuh"

namespace tutti {

// A tile whose address or length allows no access of 16 bytes; of a short one the rest is zero.
__device__ __noinline__ inline uint4 load_narrow(const std::byte* from, int width, int bytes) {
  std::uint64_t low = 0, high = 0;
  for (int at = 0; at < bytes;) {
    const int step = at + width <= bytes ? width : 1;
    const std::uint64_t piece = step == 8   ? pack(load_u64(from + at))
                                : step == 4 ? load_u32(from + at)
                                : step == 2 ? load_u16(from + at)
                                            : load_u8(from + at);
    (at < 8 ? low : high) |= piece << (8 * at & 63);
    at += step;
  }
  const uint2 first = unpack(low), second = unpack(high);
  return uint4{first.x, first.y, second.x, second.y};
}

__device__ __noinline__ inline void store_narrow(std::byte* to, uint4 value, int width, int bytes) {
  const std::uint64_t low = pack(uint2{value.x, value.y}), high = pack(uint2{value.z, value.w});
  for (int at = 0; at < bytes;) {
    const int step = at + width <= bytes ? width : 1;
    const std::uint64_t piece = (at < 8 ? low : high) >> (8 * at & 63);
    const auto word = static_cast<std::uint32_t>(piece);
    if (step == 8) store_u64(to + at, unpack(piece));
    if (step == 4) store_u32(to + at, word);
    if (step == 2) store_u16(to + at, word);
    if (step == 1) store_u8(to + at, word);
    at += step;
  }
}

class TokenVerbs {
 public:
  static constexpr int kTileParts = 1;
  template <class T>
  static constexpr __host__ __device__ int tile_elements() {
    return static_cast<int>(16 / sizeof(T));
  }

  struct alignas(16) Words {
    std::uint64_t at[2];
  };
  template <class T>
  static __device__ Tile<T, tile_elements<T>()> tile_of(const Words& words) {
    return __builtin_bit_cast(Tile<T, tile_elements<T>()>, words);
  }
  template <class T, int kCount>
  static __device__ Words words_of(const Tile<T, kCount>& tile) {
    return __builtin_bit_cast(Words, tile);
  }

  template <class T>
  __device__ Words load_from(const std::byte* buffer, TileAt tile) const {
    const std::byte* const from = buffer + tile.first * sizeof(T);
    const int width = width_of(reinterpret_cast<std::uintptr_t>(buffer));
    return __builtin_bit_cast(
        Words, width == 16 && tile.count == tile_elements<T>()
                   ? load_vector(from)
                   : load_narrow(from, width, tile.count * static_cast<int>(sizeof(T))));
  }
  template <class T>
  __device__ void store_to(std::byte* buffer, TileAt tile, const Words& words) const {
    std::byte* const to = buffer + tile.first * sizeof(T);
    const int width = width_of(reinterpret_cast<std::uintptr_t>(buffer));
    const auto value = __builtin_bit_cast(uint4, words);
    if (width == 16 && tile.count == tile_elements<T>()) {
      store_vector(to, value);
    } else {
      store_narrow(to, value, width, tile.count * static_cast<int>(sizeof(T)));
    }
  }

  __device__ Slice first_token() const { return blockIdx.x; }
  __device__ Slice first_of_token() const { return threadIdx.x; }
  template <class F>
  __device__ Outcome for_each_token(Slice tokens, F&& f) const {
    TUTTI_NO_UNROLL
    for (Slice token = blockIdx.x; token < tokens; token += gridDim.x) {
      if (f(token) != Outcome::kDone) return Outcome::kFailed;
    }
    return Outcome::kDone;
  }
  template <class F>
  __device__ void for_each_of_token(Slice tiles, F&& f) const {
    TUTTI_NO_UNROLL
    for (Slice k = threadIdx.x; k < tiles; k += blockDim.x) f(k);
  }
  // In shared memory, each thread its own.
  __device__ bool holds(Slice k) const { return k < kHeldTiles * blockDim.x; }
  __device__ void hold(Slice k, const Words& words, const Words& beside) const {
    held_tiles()[k] = words;
    held_tiles()[kHeldTiles * blockDim.x + k] = beside;
  }
  __device__ Words held(Slice k) const { return held_tiles()[k]; }
  __device__ Words held_beside(Slice k) const { return held_tiles()[kHeldTiles * blockDim.x + k]; }
  template <class F>
  __device__ Outcome sum_of_token(Slice tiles, F&& f, float& sum) {
    return block_sum_.over(tiles, f, sum);
  }

 private:
  static __device__ Words* held_tiles() {
    extern __shared__ uint4 held_of_block[];  // kHeldBytes
    return reinterpret_cast<Words*>(held_of_block);
  }

  BlockSum block_sum_;
};

}  // namespace tutti
