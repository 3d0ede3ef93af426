// Deals pieces of any lengths to the blocks of a grid by bytes, not by pieces: every block copies
// the same number of bytes, and each link is served by blocks in proportion to its bytes.
//
// A run is the share of one block. It begins and ends at whole units within a piece, so that
// vectors stay as aligned as the piece is. A unit is a cache line: a warp's accesses fill whole
// lines, and a message that has fewer lines than there are blocks is left to fewer blocks.
//
//   outputs that peers address  A block has one run of everything the rank has for others, laid
//                               end to end in the order of sending. Most blocks store to one rank.
//   staged outputs              A block has a run of every piece, so that blocks of sender and
//                               receiver have the same number of bytes. In each pass a run goes
//                               through the block's own room in the sender's slot: barriers order
//                               only blocks of the same index.
#pragma once

#include "algorithms/pieces.hpp"

namespace tutti {

// A piece has fewer than 2^32 elements of at most 8 bytes, so 15 pieces have fewer than 2^32 lines.
using Units = std::uint32_t;

// One block's run of pieces that are laid end to end, each rounded up to whole units. No run is
// more than a unit longer than another.
class BlockRun {
 public:
  // `units`: of all pieces together.
  TUTTI_BODY BlockRun(Units units, int block, int blocks, int unit_bits) : unit_bits_(unit_bits) {
    const auto index = static_cast<Units>(block), all = static_cast<Units>(blocks);
    const Units each = units / all, longer = units % all;  // the first blocks' are longer
    first_ = each * index + (index < longer ? index : longer);
    end_ = first_ + each + (index < longer ? 1 : 0);
  }

  // The part of the next piece that is in the run. Call it for every piece in turn.
  TUTTI_BODY Range next(std::size_t bytes) {
    const Units begin = passed_;
    passed_ += units_of(bytes, unit_bits_);
    const Units first = first_ > begin ? first_ : begin;
    const Units end = end_ < passed_ ? end_ : passed_;
    if (first >= end) return {};
    const std::size_t before = first - begin, units = end - first;
    return cut({before << unit_bits_, units << unit_bits_}, bytes);
  }

  static TUTTI_BODY Units units_of(std::size_t bytes, int unit_bits) {
    return static_cast<Units>((bytes + (std::size_t{1} << unit_bits) - 1) >> unit_bits);
  }

 private:
  Units first_, end_, passed_ = 0;  // of all pieces
  int unit_bits_;
};

// The layout of an operation on bytes for one block: the same on every rank for the same index.
class Dealing {
 public:
  TUTTI_BODY Dealing(const KernelArgs& work, int block)
      : block_(block), blocks_(work.blocks), ranks_(work.ranks), room_(work.count) {
    if (!work.stage_output) return;
    const std::size_t slot = work.staging_bytes / static_cast<std::size_t>(work.ranks);
    const auto blocks = static_cast<std::size_t>(work.blocks);
    constexpr std::size_t kManyLines = 8;  // of fewer, rounding would waste too many
    if (slot >> kLineBits < kManyLines * blocks) unit_bits_ = kVectorBits;
    const std::size_t units = slot >> unit_bits_;
    if (units < blocks) blocks_ = static_cast<int>(units);  // others have no room
    slot_ = units << unit_bits_;
    room_ = units / static_cast<std::size_t>(blocks_) << unit_bits_;
  }

  TUTTI_BODY Units units_of(std::size_t bytes) const {
    return BlockRun::units_of(bytes, unit_bits_);
  }
  // This block's run of pieces that have `units` units together.
  TUTTI_BODY BlockRun run_of_pieces(Units units) const {
    return BlockRun(units, block_, blocks_, unit_bits_);
  }
  // This block's run of one piece. Short pieces, and lines that are left over, go to other blocks
  // for each pair of ranks, so that they do not all fall to the first blocks.
  TUTTI_BODY Range run_of(std::size_t bytes, int from, int to) const {
    if (block_ >= blocks_) return {};
    const int index = (block_ + (from + to) % ranks_ * blocks_ / ranks_) % blocks_;
    return BlockRun(units_of(bytes), index, blocks_, unit_bits_).next(bytes);
  }

  // How many bytes of a run are copied in one pass. There is one pass unless outputs are staged.
  TUTTI_BODY std::size_t room() const { return room_; }
  TUTTI_BODY Range in_pass(Range run, std::size_t done) const {
    return cut({run.first + done, room_}, run.first + run.count);
  }
  // No run is longer where no piece has more than `bytes` bytes.
  TUTTI_BODY std::size_t longest_run(std::size_t bytes) const {
    return divided(bytes, blocks_, std::size_t{1} << unit_bits_);
  }
  // Where this block's room is in a rank's staging, for what rank `from` sends.
  TUTTI_BODY std::size_t room_for(int from) const {
    return slot_ * static_cast<std::size_t>(from) + room_ * static_cast<std::size_t>(block_);
  }

 private:
  static constexpr int kVectorBits = 4, kLineBits = 7;

  int block_, blocks_, ranks_, unit_bits_ = kLineBits;
  std::size_t slot_ = 0, room_;
};

}  // namespace tutti
