#include "pipelines/serial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/try.hpp"
#include "pipelines/order.hpp"

namespace tutti::pipelines {
namespace {

using SerialList = std::vector<const Instruction*>;

SerialList as_listed(const std::vector<Instruction>& list) {
  SerialList serial;
  for (const Instruction& instruction : list) serial.push_back(&instruction);
  return serial;
}

// A rank's list, stream by stream.
class Branches {
 public:
  explicit Branches(const std::vector<Instruction>& list) {
    for (const Instruction& instruction : list) {
      std::size_t needs = 0;
      if (const auto* wait = std::get_if<WaitForStream>(&instruction.action)) {
        needs = streams_[wait->on].steps.size();
      }
      streams_[instruction.stream].steps.push_back({&instruction, needs});
    }
  }

  // `before`: which stream is tried before which others.
  template <class Before>
  SerialList in_order(const Before& before) {
    std::vector<int> numbers;
    for (const auto& [number, stream] : streams_) numbers.push_back(number);
    std::ranges::sort(numbers, before);
    SerialList serial;
    // A stream that has advanced may allow an earlier one to go on.
    while (std::ranges::any_of(numbers, [&](int number) { return advance(number, serial); })) {
    }
    return serial;
  }

 private:
  struct Step {
    const Instruction* instruction;
    std::size_t needs;  // of a wait for a stream: how many steps of that one come before
  };
  struct Stream {
    std::vector<Step> steps;
    std::size_t next = 0;
  };

  bool advance(int number, SerialList& serial) {
    Stream& stream = streams_.at(number);
    const std::size_t begin = stream.next;
    for (; stream.next < stream.steps.size(); ++stream.next) {
      const auto& [instruction, needs] = stream.steps[stream.next];
      const auto* wait = std::get_if<WaitForStream>(&instruction->action);
      if (wait != nullptr && streams_.at(wait->on).next < needs) break;
      serial.push_back(instruction);
    }
    return stream.next > begin;
  }

  std::map<int, Stream> streams_;
};

// All ranks, each with one stream.
class SerialExecution {
 public:
  SerialExecution(std::span<const SerialList> ranks, int calls)
      : ranks_(ranks), calls_(calls), turns_(ranks.size()) {}

  // Empty: everything has run.
  std::string who_waits() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        while (step(rank)) progress = true;
      }
    }
    std::string text;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& [call, next] = turns_[rank];
      if (call > calls_) continue;
      const Event event{Event::Kind::kInstruction, static_cast<int>(rank), call,
                        ranks_[rank][next]};
      text += (text.empty() ? "" : "; ") + event_text(event);
    }
    return text;
  }

 private:
  struct Turn {
    int call = 1;
    std::size_t next = 0;
  };

  bool step(std::size_t rank) {
    Turn& turn = turns_[rank];
    if (turn.call > calls_) return false;
    if (turn.next == ranks_[rank].size()) {
      turn = {turn.call + 1, 0};
      return true;
    }
    const auto& action = ranks_[rank][turn.next]->action;
    if (const auto* await = std::get_if<Await>(&action)) {
      if (written_[await->word] < turn.call) return false;
    } else if (const auto* signal = std::get_if<Signal>(&action)) {
      written_[signal->word] = turn.call;
    }
    ++turn.next;
    return true;
  }

  std::span<const SerialList> ranks_;
  int calls_;
  std::vector<Turn> turns_;
  std::map<Word, int> written_;  // the last call that wrote it
};

template <class Order>
Status execute_in(std::span<const std::vector<Instruction>> ranks, int calls, std::string_view what,
                  const Order& order) {
  std::vector<SerialList> serial;
  serial.reserve(ranks.size());
  for (const auto& list : ranks) serial.push_back(order(list));
  const std::string waiting = SerialExecution(serial, calls).who_waits();
  if (waiting.empty()) return Status::ok();
  return {
      StatusCode::kInvalidArgument,
      fmt::format("deadlock if each rank runs its streams in one queue, {}: {}", what, waiting)};
}

}  // namespace

Status execute_serially(std::span<const std::vector<Instruction>> ranks, int calls) {
  TUTTI_TRY(execute_in(ranks, calls, "as listed", as_listed));
  TUTTI_TRY(execute_in(ranks, calls, "the caller's stream first",
                       [](const auto& list) { return Branches(list).in_order(std::less<>()); }));
  return execute_in(ranks, calls, "the last stream first",
                    [](const auto& list) { return Branches(list).in_order(std::greater<>()); });
}

}  // namespace tutti::pipelines
