// Words that tell a kernel which parts of an operation's output have come, while the operation
// runs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti {

// The output consists of pieces, one of each rank, and a piece of chunks. Once chunk j of piece p
// is there, words[p * chunks + j] is `value`. The rank's own piece has no words. In the rank's
// device memory.
struct Arrivals {
  std::uint32_t* words = nullptr;  // null: nobody asks
  std::uint32_t value = 0;
  std::size_t piece_bytes = 0, chunk_bytes = 0;
  int chunks = 1;        // of a piece; the last one may be shorter
  bool with_own = true;  // the rank's own piece is brought, too
  void* met = nullptr;   // an event (CudaEvent) to record once the ranks have met first; or null

  // The word of the chunk that holds this byte of the output.
  std::uint32_t* word_of(std::size_t offset) const {
    const std::size_t piece = offset / piece_bytes, within = offset - piece * piece_bytes;
    return words + piece * static_cast<std::size_t>(chunks) + within / chunk_bytes;
  }
  // The bytes from here to the end of its chunk.
  std::size_t left_of(std::size_t offset) const {
    const std::size_t within = offset % piece_bytes, to_end = chunk_bytes - within % chunk_bytes;
    return to_end < piece_bytes - within ? to_end : piece_bytes - within;
  }
};

}  // namespace tutti
