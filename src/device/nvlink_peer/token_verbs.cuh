// What teams on GPUs do in own memory: tiles of any buffer, and the verbs of bodies that work on
// whole tokens. What these call a block is a cluster, where the kernel was launched in clusters.
#pragma once

#include "device/nvlink_peer/block_sum.cuh"
#include "device/nvlink_peer/cluster.cuh"
#include "device/nvlink_peer/waits.cuh"

namespace tutti {

// The tile is whole, and all addresses that the access is used for are 16-byte aligned.
struct WideAccess {
  static constexpr bool kLoadsAhead = true;
  static constexpr bool kIsWhole = true;
};
// Anything else. Tiles are loaded from any address, and stored by accesses of `width` bytes, never
// less than the element: of 16 where only what whole tiles are stored to is aligned.
struct NarrowAccess {
  static constexpr bool kLoadsAhead = false;
  static constexpr bool kIsWhole = false;
  int width;
};

// How a range is cut into tiles, and which accesses they allow. Where tiles are to be stored by
// vectors, the first one begins `lead` elements in front of the range, of which it lacks these.
struct TileCut {
  int width;           // what all addresses allow
  int stored = width;  // what whole tiles are stored to allows
  unsigned lead = 0;   // in elements, less than a tile
};

// `Crew`: the blocks that share a token, a Cluster or a single one.
template <class Crew>
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
    return __builtin_bit_cast(Words,
                              width == 16 && tile.count == tile_elements<T>()
                                  ? load_vector(from)
                                  : load_bytes(from, tile.count * static_cast<int>(sizeof(T))));
  }
  template <class T>
  __device__ void store_to(std::byte* buffer, TileAt tile, const Words& words) const {
    std::byte* const to = buffer + tile.first * sizeof(T);
    const int width = width_of(reinterpret_cast<std::uintptr_t>(buffer));
    const auto value = __builtin_bit_cast(uint4, words);
    if (width == 16 && tile.count == tile_elements<T>()) {
      store_vector(to, value);
    } else {
      store_bytes(to, value, width, tile.count * static_cast<int>(sizeof(T)));
    }
  }

  template <class T>
  __device__ Words load_from(const std::byte* buffer, WideAccess, TileAt tile) const {
    return __builtin_bit_cast(Words, load_vector(buffer + tile.first * sizeof(T)));
  }
  template <class T>
  __device__ Words load_from(const std::byte* buffer, NarrowAccess, TileAt tile) const {
    const int bytes = tile.count * static_cast<int>(sizeof(T));
    return __builtin_bit_cast(Words, load_bytes(buffer + tile.first * sizeof(T), bytes));
  }
  // A tile that is whole in one type may be half a one or a quarter in another.
  template <class T>
  __device__ void store_to(std::byte* buffer, WideAccess, TileAt tile, const Words& words) const {
    std::byte* const to = buffer + tile.first * sizeof(T);
    const int bytes = tile.count * static_cast<int>(sizeof(T));
    const auto value = __builtin_bit_cast(uint4, words);
    if (bytes == 16) store_vector(to, value);
    if (bytes == 8) store_u64(to, uint2{value.x, value.y});
    if (bytes == 4) store_u32(to, value.x);
  }
  template <class T>
  __device__ void store_to(std::byte* buffer, NarrowAccess access, TileAt tile,
                           const Words& words) const {
    store_bytes(buffer + tile.first * sizeof(T), __builtin_bit_cast(uint4, words), access.width,
                tile.count * static_cast<int>(sizeof(T)));
  }

  // Of an operation on tokens of T.
  template <class T, class F>
  __device__ Outcome with_token_access(const KernelArgs& work, F&& f) const {
    const auto bits = [](const std::byte* buffer) {
      return reinterpret_cast<std::uintptr_t>(buffer);
    };
    const std::uintptr_t inputs =
        bits(work.input) | bits(work.output) | bits(work.norm.residual) | bits(work.norm.weight);
    // Elements of 8 bits take less of what a tile is stored to.
    const bool narrows = work.norm.output_dtype == DataType::kFloat8E4M3 ||
                         work.norm.output_dtype == DataType::kFloat8E5M2;
    const std::uintptr_t output = bits(work.norm.output);
    const std::uintptr_t whole = inputs | output * (narrows ? sizeof(T) : 1);
    const bool is_whole = work.norm.hidden % tile_elements<T>() == 0;
    if (is_whole && width_of(whole) == 16) return f(WideAccess{});
    return f(NarrowAccess{width_of(inputs | output)});
  }

  __device__ Slice first_token() const { return Crew::index(); }
  __device__ Slice first_of_token() const { return Crew::thread(); }
  __device__ Slice next_token(Slice token) const { return token + Crew::count(); }
  __device__ Slice next_of_token(Slice k) const { return k + Crew::threads(); }
  template <class F>
  __device__ Outcome for_each_token(Slice tokens, F&& f) const {
    TUTTI_NO_UNROLL
    for (Slice token = first_token(); token < tokens; token = next_token(token)) {
      if (f(token) != Outcome::kDone) return Outcome::kFailed;
    }
    return Outcome::kDone;
  }
  template <class F>
  __device__ void for_each_of_token(Slice tiles, F&& f) const {
    TUTTI_NO_UNROLL
    for (Slice k = first_of_token(); k < tiles; k = next_of_token(k)) f(k);
  }
  // In registers.
  __device__ bool holds(Slice k) const { return k < kHeldTiles * Crew::threads(); }
  __device__ void hold(Slice k, const Words& words) {
    TUTTI_UNROLL
    for (Slice i = 0; i < kHeldTiles; ++i) {
      if (is_held_in(i, k)) held_[i] = words;
    }
  }
  template <class F>
  __device__ void hold_beside(Slice tiles, F&& load) {
    TUTTI_UNROLL
    for (Slice i = 0; i < kHeldTiles; ++i) {
      const Slice k = first_of_token() + i * Crew::threads();
      beside_[i] = k < tiles ? load(k) : Words{};
    }
  }
  __device__ Words held(Slice k) const { return chosen(k, held_); }
  __device__ Words held_beside(Slice k) const { return chosen(k, beside_); }
  template <class F>
  __device__ Outcome sum_of_token(Slice tiles, F&& f, float& sum) {
    forget_held();
    return block_sum_.over(tiles, f, sum);
  }

 protected:
  // What some path around a loop leaves unset holds its registers all the way around.
  __device__ void forget_held() {
    TUTTI_UNROLL
    for (Words& held : held_) held = {};
  }

 private:
  static constexpr Slice kHeldTiles = 1;  // that a thread holds of a token, each with one beside it

  static __device__ bool is_held_in(Slice i, Slice k) {
    return k - i * Crew::threads() < Crew::threads();
  }
  static __device__ Words chosen(Slice k, const Words (&from)[kHeldTiles]) {
    Words words = from[0];
    TUTTI_UNROLL
    for (Slice i = 1; i < kHeldTiles; ++i) {
      if (is_held_in(i, k)) words = from[i];
    }
    return words;
  }

  Words held_[kHeldTiles], beside_[kHeldTiles];
  BlockSum block_sum_;
};

}  // namespace tutti
