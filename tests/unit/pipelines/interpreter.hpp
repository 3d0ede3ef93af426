// Runs the programs of all ranks on plain memory, in one thread. Streams of all ranks advance in a
// random order that waits permit.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "pipelines/runtime.hpp"

namespace tutti::pipelines::test {

class Interpreter {
 public:
  // Sets up all ranks.
  Interpreter(const Program& program, std::span<const std::vector<Instruction>> ranks,
              unsigned seed);

  // As if the call before had had the epoch before.
  void start_at(std::uint64_t epoch) { first_epoch_ = epoch_ = epoch; }

  // Enqueues calls of all ranks, without a synchronisation between them, and runs everything. In
  // the order of its stream, each rank's caller writes new inputs before a call. Afterwards it
  // compares all outputs, and overwrites all buffers. The number of wrong elements; -1: something
  // waits for ever.
  int run(int calls);

  int allocations() const { return allocations_; }
  int exchanges() const { return exchanges_; }

 private:
  class Rank;
  struct Step {
    std::function<bool()> ready;
    std::function<void()> run;
  };
  using Matrix = std::vector<float>;

  static float input(int call, std::size_t salt);
  float a_at(int call, std::size_t row, std::size_t column) const;
  float other_at(int call, int rank, BufferId buffer, std::size_t element) const;

  std::deque<Step>& queue(int rank, int stream);
  void create(int rank, BufferId buffer);
  Matrix& memory(int rank, BufferId buffer) { return memory_.at({rank, buffer}); }
  void begin_call(int rank, int call);
  void end_call(int rank, int call);
  int count_wrong(int rank, int call, const Product& product);
  int count_wrong_gathered(int rank, int call);
  void copy(const Move& move);
  void multiply(int rank, const Multiply& multiply);
  void multiply_row(int rank, const Product& product, const float* a, std::size_t row);
  bool run_some();
  std::size_t columns(BufferId buffer) const {
    return program_.buffers[static_cast<std::size_t>(buffer)].columns;
  }

  const Program& program_;
  std::span<const std::vector<Instruction>> ranks_;
  std::mt19937 random_;
  std::uint64_t first_epoch_ = 1, epoch_ = 1;  // of the next call
  std::map<std::pair<int, BufferId>, Matrix> memory_;
  std::map<Word, std::uint64_t> words_;
  std::map<std::pair<int, int>, std::deque<Step>> queues_;
  int allocations_ = 0, exchanges_ = 0, wrong_ = 0;
};

}  // namespace tutti::pipelines::test
