// In which order the instructions of all ranks run: which happens before which, whatever the speed
// of ranks and streams. Streams, waits for streams, and words order them; nothing else does.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "pipelines/lower.hpp"

namespace tutti::pipelines {

// Streams of all ranks are numbered through: each rank has the caller's, then its own.
struct Position {
  std::size_t stream = 0;
  int count = 0;  // of the events of this stream that access memory, from 1 on; 0: none
};

// Of each stream, how many events that access memory have happened before.
class VectorClock {
 public:
  explicit VectorClock(std::size_t streams = 0) : counts_(streams, 0) {}
  bool includes(const Position& position) const {
    return counts_[position.stream] >= position.count;
  }
  bool includes(const VectorClock& other) const;
  void join(const VectorClock& other);
  void advance(std::size_t stream) { ++counts_[stream]; }
  int count(std::size_t stream) const { return counts_[stream]; }

 private:
  std::vector<int> counts_;
};

// What happens in a stream: an instruction, or in the caller's stream the begin or end of a call.
struct Event {
  enum class Kind : std::uint8_t { kBegin, kInstruction, kEnd };
  Kind kind = Kind::kInstruction;
  int rank = 0, call = 0;
  const Instruction* instruction = nullptr;  // of kInstruction
};

struct Moment {
  const Event& event;
  Position position;
  const VectorClock& before;  // includes this event
  // A wait for a word: whatever happened before the word was written has happened before the wait.
  bool implied = false;
};

// Runs `calls` calls of all ranks, without a synchronisation between them, in an order that waits
// permit. `visit` sees each event; a failure that it returns ends the run.
//
// kInvalidArgument: an instruction waits for ever, or a word is written twice in a call.
Status execute(std::span<const std::vector<Instruction>> ranks, int calls,
               const std::function<Status(const Moment&)>& visit);

// "rank 2, call 1, stream 1: RecvPost(...): waits for ready[0] from rank 3"
std::string event_text(const Event& event);

}  // namespace tutti::pipelines
