#include "pipelines/order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "base/try.hpp"
#include "pipelines/print.hpp"

namespace tutti::pipelines {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct Enqueued {
  Event event;
  std::size_t after = kNone;  // of a wait for a stream: the last event that it waits for
  bool awaited = false;       // some wait for a stream does
};

class Execution {
 public:
  Execution(std::span<const std::vector<Instruction>> ranks, int calls)
      : ranks_(ranks), per_rank_(count_streams(ranks)), queues_(ranks.size() * per_rank_) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (int call = 1; call <= calls; ++call) enqueue_call(static_cast<int>(rank), call);
    }
    clocks_.assign(queues_.size(), VectorClock(queues_.size()));
    copies_.assign(queues_.size(), nullptr);
    next_.assign(queues_.size(), 0);
  }

  Status run(const std::function<Status(const Moment&)>& visit) {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t stream = 0; stream < queues_.size(); ++stream) {
        while (next_[stream] < queues_[stream].size() && can_run(head(stream))) {
          TUTTI_TRY(step(stream, visit));
          progress = true;
        }
      }
    }
    return stuck();
  }

 private:
  using WordOfCall = std::pair<Word, int>;
  using ClockCopy = std::shared_ptr<const VectorClock>;

  static std::size_t count_streams(std::span<const std::vector<Instruction>> ranks) {
    int most = kCallerStream;
    for (const auto& list : ranks) {
      for (const Instruction& instruction : list) most = std::max(most, instruction.stream);
    }
    return static_cast<std::size_t>(most - kCallerStream) + 1;
  }

  std::size_t number_of(int rank, int stream) const {
    return static_cast<std::size_t>(rank) * per_rank_ +
           static_cast<std::size_t>(stream - kCallerStream);
  }

  void enqueue_call(int rank, int call) {
    enqueue(kCallerStream, {Event::Kind::kBegin, rank, call});
    for (const Instruction& instruction : ranks_[static_cast<std::size_t>(rank)]) {
      enqueue(instruction.stream, {Event::Kind::kInstruction, rank, call, &instruction});
    }
    enqueue(kCallerStream, {Event::Kind::kEnd, rank, call});
  }

  void enqueue(int stream, const Event& event) {
    Enqueued enqueued{event};
    if (const auto* wait = action<WaitForStream>(event)) {
      const auto& queue = queues_[number_of(event.rank, wait->on)];
      if (!queue.empty()) {
        enqueued.after = queue.back();
        events_[queue.back()].awaited = true;
      }
    }
    queues_[number_of(event.rank, stream)].push_back(events_.size());
    events_.push_back(enqueued);
  }

  template <class Action>
  static const Action* action(const Event& event) {
    return event.instruction == nullptr ? nullptr : std::get_if<Action>(&event.instruction->action);
  }

  static bool accesses_memory(const Event& event) {
    return event.instruction == nullptr || action<Move>(event) != nullptr ||
           action<Multiply>(event) != nullptr;
  }

  std::size_t head(std::size_t stream) const { return queues_[stream][next_[stream]]; }

  bool can_run(std::size_t index) const {
    const Enqueued& enqueued = events_[index];
    if (enqueued.after != kNone) return ended_.contains(enqueued.after);
    const auto* await = action<Await>(enqueued.event);
    return await == nullptr || written_.contains({await->word, enqueued.event.call});
  }

  Status step(std::size_t stream, const std::function<Status(const Moment&)>& visit) {
    const std::size_t index = head(stream);
    const Enqueued& enqueued = events_[index];
    VectorClock& clock = clocks_[stream];
    bool implied = false;
    if (enqueued.after != kNone) join(stream, *ended_.at(enqueued.after));
    if (const auto* await = action<Await>(enqueued.event)) {
      const VectorClock& written = *written_.at({await->word, enqueued.event.call});
      implied = clock.includes(written);
      if (!implied) join(stream, written);
    }
    if (accesses_memory(enqueued.event)) {
      clock.advance(stream);
      copies_[stream] = nullptr;
    }
    ++next_[stream];
    const Position position{stream, clock.count(stream)};
    if (enqueued.awaited) ended_.emplace(index, copy_of(stream));
    if (const auto* signal = action<Signal>(enqueued.event)) {
      const WordOfCall word{signal->word, enqueued.event.call};
      if (!written_.emplace(word, copy_of(stream)).second) {
        return {StatusCode::kInvalidArgument,
                event_text(enqueued.event) + ", a word that this call has written before"};
      }
    }
    return visit({enqueued.event, position, clock, implied});
  }

  void join(std::size_t stream, const VectorClock& other) {
    clocks_[stream].join(other);
    copies_[stream] = nullptr;
  }

  // Streams write many words at the same time.
  const ClockCopy& copy_of(std::size_t stream) {
    ClockCopy& copy = copies_[stream];
    if (copy == nullptr) copy = std::make_shared<const VectorClock>(clocks_[stream]);
    return copy;
  }

  // Success if everything has run.
  Status stuck() const {
    std::string text;
    for (std::size_t stream = 0; stream < queues_.size(); ++stream) {
      if (next_[stream] == queues_[stream].size()) continue;
      text += (text.empty() ? "" : "; ") + event_text(events_[head(stream)].event);
    }
    if (text.empty()) return Status::ok();
    return {StatusCode::kInvalidArgument, "deadlock: " + text};
  }

  std::span<const std::vector<Instruction>> ranks_;
  std::size_t per_rank_;
  std::vector<Enqueued> events_;
  std::vector<std::vector<std::size_t>> queues_;  // of each stream, its events
  std::vector<std::size_t> next_;                 // of each stream, the first that has not run
  std::vector<VectorClock> clocks_;
  std::vector<ClockCopy> copies_;           // of each stream's clock, or null
  std::map<std::size_t, ClockCopy> ended_;  // of events that a wait for a stream awaits
  std::map<WordOfCall, ClockCopy> written_;
};

}  // namespace

bool VectorClock::includes(const VectorClock& other) const {
  return std::ranges::equal(counts_, other.counts_, std::greater_equal<>());
}

void VectorClock::join(const VectorClock& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    counts_[i] = std::max(counts_[i], other.counts_[i]);
  }
}

Status execute(std::span<const std::vector<Instruction>> ranks, int calls,
               const std::function<Status(const Moment&)>& visit) {
  return Execution(ranks, calls).run(visit);
}

std::string event_text(const Event& event) {
  std::string what = event.kind == Event::Kind::kBegin ? "the caller before the call"
                                                       : "the caller after the call";
  if (event.kind == Event::Kind::kInstruction) {
    const std::string action = action_text(*event.instruction);
    what = fmt::format("{}: {}{}{}", stream_text(event.instruction->stream),
                       event.instruction->node, action.empty() ? "" : ": ", action);
  }
  return fmt::format("rank {}, call {}, {}", event.rank, event.call, what);
}

}  // namespace tutti::pipelines
