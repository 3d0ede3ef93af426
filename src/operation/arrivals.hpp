// Words that tell a kernel which parts of an operation's output have come, while the operation
// runs. Copy engines bring them, or whoever pull() calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

// The output consists of pieces, one of each rank, and a piece of chunks. It may end within a
// piece: then the pieces behind are empty. Once chunk j of piece p is there, words[p * chunks + j]
// is `value`; the words of empty chunks stay as they are, as those of the rank's own piece, which
// is not brought. In the rank's device memory.
struct Arrivals {
  std::uint32_t* words = nullptr;  // null: nobody asks
  std::uint32_t value = 0;
  std::size_t piece_bytes = 0, chunk_bytes = 0;
  std::size_t output_bytes = 0;  // all of the output
  int chunks = 1;                // of a piece; the last one may be shorter
  // Where the kernel that waits for the words will be. It takes every SM, so this stream is put
  // behind all that the operation is behind, too.
  Stream kernel_stream = nullptr;
  void* met = nullptr;  // an event (CudaEvent) to record once the ranks have met first; or null
  // Not empty: nothing copies the pieces of other ranks, and their words stay as they are. Behind
  // the ranks' first meeting `go` becomes `value`. Then pull() enqueues what reads each rank's
  // piece, which is where `pieces` says (null: the own one), and has the operation's stream wait
  // for it. Behind that the ranks meet again.
  std::function<Status(std::span<const std::byte* const> pieces)> pull = {};
  std::uint32_t* go = nullptr;

  // The word of the chunk that holds this byte of the output.
  std::uint32_t* word_of(std::size_t offset) const {
    const std::size_t piece = offset / piece_bytes, within = offset - piece * piece_bytes;
    return words + piece * static_cast<std::size_t>(chunks) + within / chunk_bytes;
  }
  // The bytes from here, which is in the output, to the end of its chunk.
  std::size_t left_of(std::size_t offset) const {
    const std::size_t within = offset % piece_bytes;
    return std::min(
        {chunk_bytes - within % chunk_bytes, piece_bytes - within, output_bytes - offset});
  }
};

}  // namespace tutti
