// Operations whose buffers lie on a GPU, one after the other through two slots of pinned memory:
// while one slot's piece is on the network, the other's is copied. A direct one is a single piece,
// which uses no slot: the wire moves its data itself.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "executors/network/copy_ring.hpp"
#include "executors/network/engine.hpp"

namespace tutti {

// One operation of the engine, with its buffers on the GPU.
struct StagedTransfer {
  NetworkOperation what;
  // How many ranges of `what.shape.count` elements this rank's sides hold, from the begin of one to
  // the next `what.shape.stride`; 0: it has no such side.
  std::size_t input_rows = 0, output_rows = 0;
  std::size_t most_rows = 1;  // on any rank
  bool is_local = false;      // from this rank to itself
  // Where this rank's pre-multiplier is on the GPU; null: it is `what.scalar`.
  const std::byte* scalar = nullptr;
  // Of a direct one (`what.on_gpu`): the copy of this rank's own part, made first; of 0 rows if
  // there is none.
  RequestedCopy own = {};
};

// Where a lane's pieces lie. Each side has `bytes`; a lane that only sends, or only receives, may
// have both at one place.
struct StagedSlots {
  std::array<std::byte*, 2> inputs = {}, outputs = {};
  std::size_t bytes = 0;
  std::byte* scalar = nullptr;  // for an element; of lanes that may sum
};

class StagedLane {
 public:
  StagedLane(const StagedSlots& slots, CopyRule omitted) : slots_(slots), omitted_(omitted) {}

  void add(StagedTransfer transfer) { transfers_.push_back(std::move(transfer)); }
  // The copy that brings the first piece's input, or the pre-multiplier; of 0 rows if there is
  // none. The lane takes it for made when it is first advanced. Before that, once.
  RequestedCopy take_first_copy();

  struct Context {
    NetworkEngine& engine;
    CopyRing& copies;
    NetworkEngine::Clock::time_point deadline;  // of what is started now
  };
  // Whether anything was done.
  bool advance(const Context& context);
  bool finished() const { return next_transfer_ == transfers_.size() && first_ == next_; }

 private:
  struct Piece {
    enum class State : std::uint8_t { kCopyingIn, kMoving, kCopyingOut, kFinished };
    State state = State::kCopyingIn;
    std::uint64_t awaited = 0;  // the number of a copy, or the engine's ticket
    const StagedTransfer* transfer = nullptr;
    std::size_t first = 0, count = 0, stride = 0;  // elements
  };

  bool has_next() const { return next_transfer_ < transfers_.size() && next_ - first_ < 2; }
  Piece& piece(std::uint64_t number) { return pieces_[number % 2]; }
  void take_next();
  RequestedCopy copy_of_scalar(const StagedTransfer& transfer) const;
  RequestedCopy copy_in(std::uint64_t number);
  RequestedCopy copy_out(std::uint64_t number);
  void begin(std::uint64_t number, const Context& context);
  bool advance(std::uint64_t number, const Context& context);
  void copy_or_finish(std::uint64_t number, const Context& context);
  NetworkOperation operation_of(std::uint64_t number, const Context& context);

  const StagedSlots slots_;
  const CopyRule omitted_;
  std::vector<StagedTransfer> transfers_;
  // Pieces are counted from 0: those before first_ are finished, those before next_ taken, those
  // before started_ on the network, or past it.
  std::uint64_t first_ = 0, next_ = 0, started_ = 0;
  std::array<Piece, 2> pieces_;
  std::size_t next_transfer_ = 0, next_element_ = 0;
};

}  // namespace tutti
