// What one rank enqueues in a call: loops and conditions are gone, and transfers are words, copies
// and waits.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "pipelines/program.hpp"

namespace tutti::pipelines {

// Rows of a buffer of a rank.
struct Place {
  int rank = 0;
  BufferId buffer = kNoBuffer;
  std::vector<Rows> rows;
  friend bool operator==(const Place&, const Place&) = default;
};

enum class WordKind : std::uint8_t { kReady, kDone };

// A word in symmetric memory. Each has one writer, which writes the epoch of the call.
struct Word {
  int rank = 0;  // in whose memory
  WordKind kind = WordKind::kReady;
  int writer = 0;  // a rank
  int index = 0;   // below Program::words
  friend auto operator<=>(const Word&, const Word&) = default;
};
// The place of a word among all words that its rank has, and how many these are.
std::size_t position_of(const Word& word, const Program& program);
std::size_t words_per_rank(const Program& program);

// Waits for what was enqueued in stream `on` before this instruction.
struct WaitForStream {
  int on = 0;
  friend bool operator==(const WaitForStream&, const WaitForStream&) = default;
};
// Waits until a word has the epoch of the call, or a later one.
struct Await {
  Word word;
  friend bool operator==(const Await&, const Await&) = default;
};
// Writes the epoch of the call, after everything before it in its stream.
struct Signal {
  Word word;
  friend bool operator==(const Signal&, const Signal&) = default;
};
// Ranges of rows, pair by pair. One of the places is the rank's own.
struct Move {
  Place from, to;
  friend bool operator==(const Move&, const Move&) = default;
};
// C = a x B + bias for all products of the program.
struct Multiply {
  Place a;
  std::vector<Rows> c;  // the rows of each C, range by range as in `a`
  friend bool operator==(const Multiply&, const Multiply&) = default;
};

struct Instruction {
  int stream = 0;
  std::variant<WaitForStream, Await, Signal, Move, Multiply> action;
  std::string node;  // the text of its node
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

// The lists of all ranks. A wait for a word is left out if whatever happened before the word was
// written has happened before the wait, because of what the same stream has waited for before.
// kInvalidArgument: a rank would wait for ever, or the program is malformed (validate.hpp).
Result<std::vector<std::vector<Instruction>>> lower(const Program& program);

}  // namespace tutti::pipelines
