#include "interpreter.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "base/has_reached.hpp"
#include "support/check.hpp"

namespace tutti::pipelines::test {

using tutti::test::require_ok;

// Enqueues what a program says.
class Interpreter::Rank : public PipelineRuntime {
 public:
  Rank(Interpreter& all, int rank) : all_(all), rank_(rank), epoch_(all.epoch_ - 1) {}

  int rank() const override { return rank_; }
  Status allocate(BufferId buffer) override {
    all_.create(rank_, buffer);
    ++all_.allocations_;
    return Status::ok();
  }
  Status share_handles(std::span<const BufferId>) override {
    ++all_.exchanges_;
    return Status::ok();
  }
  Status wait_for_stream(int stream, const WaitForStream& wait) override {
    const auto ended = std::make_shared<bool>(false);
    add(wait.on, always(), [ended] { *ended = true; });
    add(
        stream, [ended] { return *ended; }, [] {});
    return Status::ok();
  }
  Status begin_call(CallBuffers) override {
    ++epoch_;
    add(kCallerStream, always(), [this, call = calls_] { all_.begin_call(rank_, call); });
    return Status::ok();
  }
  Status await(int stream, const Await& await) override {
    const auto ready = [this, word = await.word, epoch = epoch_] {
      const auto found = all_.words_.try_emplace(word, all_.first_epoch_ - 1).first;
      return has_reached(found->second, epoch);
    };
    add(stream, ready, [] {});
    return Status::ok();
  }
  Status signal(int stream, const Signal& signal) override {
    add(stream, always(),
        [this, word = signal.word, epoch = epoch_] { all_.words_[word] = epoch; });
    return Status::ok();
  }
  Status move(int stream, const Move& move) override {
    add(stream, always(), [this, move] { all_.copy(move); });
    return Status::ok();
  }
  Status multiply(int stream, const Multiply& multiply) override {
    add(stream, always(), [this, multiply] { all_.multiply(rank_, multiply); });
    return Status::ok();
  }

  Status end_call(const Status& status) override {
    add(kCallerStream, always(), [this, call = calls_++] { all_.end_call(rank_, call); });
    return status;
  }

 private:
  static std::function<bool()> always() {
    return [] { return true; };
  }
  void add(int stream, std::function<bool()> ready, std::function<void()> run) {
    all_.queue(rank_, stream).push_back({std::move(ready), std::move(run)});
  }

  Interpreter& all_;
  int rank_;
  std::uint64_t epoch_;
  int calls_ = 0;
};

Interpreter::Interpreter(const Program& program, std::span<const std::vector<Instruction>> ranks,
                         unsigned seed)
    : program_(program), ranks_(ranks), random_(seed) {
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    for (std::size_t id = 0; id < program.buffers.size(); ++id) {
      if (program.buffers[id].is_callers()) create(rank, static_cast<BufferId>(id));
    }
    Rank runtime(*this, rank);
    require_ok(run_setup(program, runtime));
  }
}

int Interpreter::run(int calls) {
  std::deque<Rank> runtimes;
  std::byte any{};  // the memory is the interpreter's
  const std::vector<std::byte*> buffers(program_.buffers.size(), &any);
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    Rank& runtime = runtimes.emplace_back(*this, rank);
    for (int call = 0; call < calls; ++call) {
      require_ok(run_call(program_, ranks_[static_cast<std::size_t>(rank)], buffers, runtime));
    }
  }
  epoch_ += static_cast<std::uint64_t>(calls);
  while (run_some()) {
  }
  for (const auto& [stream, steps] : queues_) {
    if (!steps.empty()) return -1;
  }
  return wrong_;
}

// Some steps of one stream, so that ranks and streams get far ahead of others. False: nothing can
// run.
bool Interpreter::run_some() {
  auto stream = std::next(queues_.begin(), static_cast<std::ptrdiff_t>(random_() % queues_.size()));
  for (std::size_t tried = 0; tried < queues_.size(); ++tried) {
    std::deque<Step>& steps = stream->second;
    if (!steps.empty() && steps.front().ready()) {
      for (auto most = 1 + random_() % 16; most > 0 && !steps.empty(); --most) {
        if (!steps.front().ready()) break;
        steps.front().run();
        steps.pop_front();
      }
      return true;
    }
    if (++stream == queues_.end()) stream = queues_.begin();
  }
  return false;
}

std::deque<Interpreter::Step>& Interpreter::queue(int rank, int stream) {
  return queues_[{rank, stream}];
}

void Interpreter::create(int rank, BufferId buffer) {
  const Buffer& described = program_.buffers[static_cast<std::size_t>(buffer)];
  memory_[{rank, buffer}].assign(described.rows * described.columns,
                                 std::numeric_limits<float>::quiet_NaN());
}

// Small integers, so that sums are exact.
float Interpreter::input(int call, std::size_t salt) {
  const std::size_t mixed = (salt + 1) * 2654435761u + static_cast<std::size_t>(call) * 40503u;
  return static_cast<float>((mixed >> 7) % 7) - 3;
}

float Interpreter::a_at(int call, std::size_t row, std::size_t column) const {
  return input(call, row * program_.description.k + column);
}

// Of B and bias, which differ between ranks.
float Interpreter::other_at(int call, int rank, BufferId buffer, std::size_t element) const {
  const auto source = static_cast<std::size_t>(rank * 64 + buffer);
  return input(call, 1000003 * source + element);
}

void Interpreter::begin_call(int rank, int call) {
  for (std::size_t id = 0; id < program_.buffers.size(); ++id) {
    const Buffer& buffer = program_.buffers[id];
    if (buffer.role != Role::kInput) continue;
    Matrix& matrix = memory(rank, static_cast<BufferId>(id));
    const std::size_t first = shard_rows(program_.description, rank).begin;
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      matrix[i] = buffer.part == Part::kShard
                      ? a_at(call, first + i / buffer.columns, i % buffer.columns)
                      : other_at(call, rank, static_cast<BufferId>(id), i);
    }
  }
}

void Interpreter::end_call(int rank, int call) {
  for (const Product& product : program_.products) wrong_ += count_wrong(rank, call, product);
  if (program_.gathered != kNoBuffer) wrong_ += count_wrong_gathered(rank, call);
  for (auto& [place, matrix] : memory_) {
    if (place.first != rank) continue;
    matrix.assign(matrix.size(), std::numeric_limits<float>::quiet_NaN());
  }
}

int Interpreter::count_wrong(int rank, int call, const Product& product) {
  const std::size_t n = columns(product.c);
  int wrong = 0;
  for (std::size_t i = 0; i < program_.description.m * n; ++i) {
    float sum = product.bias == kNoBuffer ? 0 : other_at(call, rank, product.bias, i % n);
    for (std::size_t k = 0; k < program_.description.k; ++k) {
      sum += a_at(call, i / n, k) * other_at(call, rank, product.b, k * n + i % n);
    }
    wrong += memory(rank, product.c)[i] == sum ? 0 : 1;
  }
  return wrong;
}

int Interpreter::count_wrong_gathered(int rank, int call) {
  const Matrix& gathered = memory(rank, program_.gathered);
  const std::size_t k = program_.description.k;
  int wrong = 0;
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    wrong += gathered[i] == a_at(call, i / k, i % k) ? 0 : 1;
  }
  return wrong;
}

void Interpreter::copy(const Move& move) {
  const Matrix& from = memory(move.from.rank, move.from.buffer);
  Matrix& to = memory(move.to.rank, move.to.buffer);
  const std::size_t row = columns(move.from.buffer);
  for (std::size_t range = 0; range < move.from.rows.size(); ++range) {
    const Rows& source = move.from.rows[range];
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(source.begin * row),
                source.count() * row,
                to.begin() + static_cast<std::ptrdiff_t>(move.to.rows[range].begin * row));
  }
}

void Interpreter::multiply(int rank, const Multiply& multiply) {
  const Matrix& a = memory(rank, multiply.a.buffer);
  for (std::size_t range = 0; range < multiply.c.size(); ++range) {
    const Rows& source = multiply.a.rows[range];
    for (std::size_t row = 0; row < source.count(); ++row) {
      const float* const values = a.data() + (source.begin + row) * program_.description.k;
      for (const Product& product : program_.products) {
        multiply_row(rank, product, values, multiply.c[range].begin + row);
      }
    }
  }
}

void Interpreter::multiply_row(int rank, const Product& product, const float* a, std::size_t row) {
  const std::size_t n = columns(product.c);
  const Matrix& b = memory(rank, product.b);
  Matrix& c = memory(rank, product.c);
  for (std::size_t column = 0; column < n; ++column) {
    float sum = product.bias == kNoBuffer ? 0 : memory(rank, product.bias)[column];
    for (std::size_t k = 0; k < program_.description.k; ++k) sum += a[k] * b[k * n + column];
    c[row * n + column] = sum;
  }
}

}  // namespace tutti::pipelines::test
