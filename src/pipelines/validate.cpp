#include "pipelines/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/try.hpp"
#include "pipelines/print.hpp"

namespace tutti::pipelines {
namespace {

Status malformed(std::string text) { return {StatusCode::kInvalidArgument, std::move(text)}; }

bool is_buffer(const Program& program, BufferId id) {
  return id >= 0 && id < static_cast<BufferId>(program.buffers.size());
}

// Looks at nodes one by one. A text names what is wrong with one; empty: nothing.
class NodeFault {
 public:
  explicit NodeFault(const Program& program) : program_(program) {}

  std::string operator()(const Allocate& node) const { return buffer("Allocate", node.buffer); }
  std::string operator()(const ShareHandles& node) const {
    for (const BufferId id : node.buffers) {
      if (std::string fault = buffer("ShareHandles", id); !fault.empty()) return fault;
    }
    return {};
  }
  std::string operator()(const Copy& node) const {
    const std::string fault = buffer("Copy", node.from.buffer);
    return fault.empty() ? buffer("Copy", node.to.buffer) : fault;
  }
  std::string operator()(const SendPost& node) const {
    return transfer("SendPost", node.transfer, !is_get());
  }
  std::string operator()(const RecvPost& node) const {
    return transfer("RecvPost", node.transfer, is_get());
  }
  std::string operator()(const SendWait& node) const {
    return transfer("SendWait", node.transfer, false);
  }
  std::string operator()(const RecvWait& node) const {
    return transfer("RecvWait", node.transfer, false);
  }
  std::string operator()(const Matmul& node) const { return buffer("Matmul", node.a.buffer); }
  std::string operator()(const For& node) const { return all(node.body); }
  std::string operator()(const If& node) const {
    const std::string fault = all(node.then);
    return fault.empty() ? all(node.otherwise) : fault;
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return {};
  }

  std::string all(const Nodes& nodes) const {
    for (const Node& node : nodes) {
      if (std::string fault = std::visit(*this, node.value); !fault.empty()) return fault;
    }
    return {};
  }

 private:
  bool is_get() const { return program_.description.protocol == Protocol::kGet; }
  std::string buffer(std::string_view node, BufferId id) const {
    if (is_buffer(program_, id)) return {};
    return fmt::format("{} of buffer {}: there are {}", node, id, program_.buffers.size());
  }
  std::string transfer(std::string_view node, const Transfer& transfer, bool moves) const {
    std::string fault = buffer(node, transfer.local.buffer);
    if (fault.empty() && transfer.remote) fault = buffer(node, transfer.remote->buffer);
    if (!fault.empty() || !moves || transfer.remote) return fault;
    return fmt::format("{} moves rows, and does not say where the peer has them", node);
  }

  const Program& program_;
};

// Which buffers exist, and which peers know.
struct Setup {
  std::set<BufferId> usable, shared;
};

Result<Setup> read_setup(const Program& program) {
  Setup setup;
  for (std::size_t id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].is_callers()) setup.usable.insert(static_cast<int>(id));
  }
  for (const Node& node : program.setup) {
    if (const auto* allocate = std::get_if<Allocate>(&node.value)) {
      if (program.buffers[static_cast<std::size_t>(allocate->buffer)].is_callers()) {
        return malformed(node_text(program, node, {}) + ": the buffer is the caller's");
      }
      setup.usable.insert(allocate->buffer);
    } else if (const auto* share = std::get_if<ShareHandles>(&node.value)) {
      for (const BufferId buffer : share->buffers) {
        if (!setup.usable.contains(buffer)) {
          return malformed(node_text(program, node, {}) + " before the memory is allocated");
        }
        if (!program.buffers[static_cast<std::size_t>(buffer)].is_symmetric) {
          return malformed(node_text(program, node, {}) + ": the memory is not symmetric");
        }
        setup.shared.insert(buffer);
      }
    } else {
      return malformed(node_text(program, node, {}) + " cannot be part of the setup");
    }
  }
  return setup;
}

// The list of one rank.
class ListValidation {
 public:
  ListValidation(const Program& program, const Setup& setup, int rank)
      : program_(program), setup_(setup), rank_(rank) {}

  Status run(const std::vector<Instruction>& list) {
    // Of each stream, from the caller's on, how many instructions of each other one come before.
    const auto streams = static_cast<std::size_t>(program_.streams) + 1;
    before_.assign(streams, std::vector<int>(streams, 0));
    for (const Instruction& instruction : list) {
      instruction_ = &instruction;
      if (!is_stream(instruction.stream)) {
        return fault(fmt::format("stream {} is out of range", instruction.stream));
      }
      TUTTI_TRY(
          std::visit([this](const auto& action) { return visit(action); }, instruction.action));
      TUTTI_TRY(note_order());
    }
    const std::size_t caller = place_of(kCallerStream);
    for (std::size_t stream = 0; stream < streams; ++stream) {
      if (before_[caller][stream] >= before_[stream][stream]) continue;
      return malformed(fmt::format("rank {}: {} is not joined to the caller's stream", rank_,
                                   stream_text(static_cast<int>(stream) + kCallerStream)));
    }
    return Status::ok();
  }

 private:
  Status fault(const std::string& text) const {
    return malformed(fmt::format("rank {}: {}: {}", rank_, instruction_->node, text));
  }
  bool is_stream(int stream) const { return stream >= kCallerStream && stream < program_.streams; }
  bool is_rank(int rank) const { return rank >= 0 && rank < program_.description.ranks; }
  static std::size_t place_of(int stream) {
    return static_cast<std::size_t>(stream - kCallerStream);
  }

  Status note_order() {
    const std::size_t stream = place_of(instruction_->stream);
    std::vector<int>& known = before_[stream];
    if (const auto* wait = std::get_if<WaitForStream>(&instruction_->action)) {
      const std::vector<int>& other = before_[place_of(wait->on)];
      // The caller's stream begins with the call.
      if (wait->on != kCallerStream && other[place_of(wait->on)] == 0) {
        return fault(stream_text(wait->on) + " has not begun");
      }
      std::ranges::transform(known, other, known.begin(),
                             [](int a, int b) { return std::max(a, b); });
    } else if (instruction_->stream != kCallerStream && known[stream] == 0) {
      return fault(stream_text(instruction_->stream) + " has not waited for the caller's");
    }
    ++known[stream];
    return Status::ok();
  }

  Status visit(const WaitForStream& wait) const {
    if (is_stream(wait.on) && wait.on != instruction_->stream) return Status::ok();
    return fault(fmt::format("waits for stream {}, which is none of the others", wait.on));
  }
  Status visit(const Await& await) const {
    TUTTI_TRY(check_word(await.word));
    if (await.word.rank == rank_) return Status::ok();
    return fault(fmt::format("waits for a word of rank {}", await.word.rank));
  }
  Status visit(const Signal& signal) const {
    TUTTI_TRY(check_word(signal.word));
    if (signal.word.writer == rank_) return Status::ok();
    return fault(fmt::format("writes a word of rank {}'s", signal.word.writer));
  }
  Status check_word(const Word& word) const {
    const bool valid = is_rank(word.rank) && is_rank(word.writer) && word.index >= 0 &&
                       word.index < program_.words;
    if (valid) return Status::ok();
    return fault(fmt::format("word {} that rank {} writes in rank {}'s memory is out of range",
                             word.index, word.writer, word.rank));
  }
  Status visit(const Move& move) const {
    TUTTI_TRY(check_place(move.from));
    TUTTI_TRY(check_place(move.to));
    if (move.from.rank != rank_ && move.to.rank != rank_) {
      return fault("moves rows between two other ranks");
    }
    if (columns(move.from.buffer) != columns(move.to.buffer)) {
      return fault("moves rows to a buffer that has other columns");
    }
    return check_counts(move.from.rows, move.to.rows);
  }
  Status visit(const Multiply& multiply) const {
    TUTTI_TRY(check_place(multiply.a));
    if (multiply.a.rank != rank_) return fault("multiplies rows of another rank");
    if (columns(multiply.a.buffer) != program_.description.k) {
      return fault("multiplies a buffer that has not K columns");
    }
    for (const Product& product : program_.products) {
      TUTTI_TRY(check_place({rank_, product.c, multiply.c}));
    }
    return check_counts(multiply.a.rows, multiply.c);
  }

  Status check_place(const Place& place) const {
    if (!is_rank(place.rank)) return fault(fmt::format("rank {} is out of range", place.rank));
    if (!is_buffer(program_, place.buffer)) {
      return fault(fmt::format("buffer {} is out of range", place.buffer));
    }
    const std::size_t all = rows_in(program_, place.rank, place.buffer);
    const bool within = std::ranges::all_of(
        place.rows, [&](const Rows& rows) { return rows.begin <= rows.end && rows.end <= all; });
    const auto text = [&] { return place_text(program_, place); };
    if (!within) {
      return fault(fmt::format("{} is out of range: the buffer has {} rows", text(), all));
    }
    if (!setup_.usable.contains(place.buffer)) return fault("uses " + text() + " before Allocate");
    if (place.rank == rank_ || setup_.shared.contains(place.buffer)) return Status::ok();
    return fault("uses " + text() + " before ShareHandles");
  }
  Status check_counts(const std::vector<Rows>& a, const std::vector<Rows>& b) const {
    if (std::ranges::equal(a, b, {}, &Rows::count, &Rows::count)) return Status::ok();
    return fault("its two sides have other numbers of rows");
  }
  std::size_t columns(BufferId id) const {
    return program_.buffers[static_cast<std::size_t>(id)].columns;
  }

  const Program& program_;
  const Setup& setup_;
  const int rank_;
  const Instruction* instruction_ = nullptr;
  std::vector<std::vector<int>> before_;
};

}  // namespace

std::size_t rows_in(const Program& program, int rank, BufferId buffer) {
  const Buffer& all = program.buffers[static_cast<std::size_t>(buffer)];
  return all.part == Part::kShard ? shard_rows(program.description, rank).count() : all.rows;
}

Status validate(const Program& program) {
  const int ranks = program.description.ranks;
  if (ranks < 1 || ranks > kMostPipelineRanks) {
    return malformed(fmt::format("a program of {} ranks", ranks));
  }
  if (program.streams < 0 || program.streams > kMostPipelineStreams) {
    return malformed(fmt::format("a program of {} streams", program.streams));
  }
  const NodeFault fault(program);
  for (const Product& product : program.products) {
    const bool valid = is_buffer(program, product.b) && is_buffer(program, product.c) &&
                       (product.bias == kNoBuffer || is_buffer(program, product.bias));
    if (!valid) return malformed("a product's buffer is out of range");
  }
  std::string text = fault.all(program.setup);
  if (text.empty()) text = fault.all(program.call);
  return text.empty() ? Status::ok() : malformed(std::move(text));
}

Status validate(const Program& program, std::span<const std::vector<Instruction>> ranks) {
  TUTTI_TRY(validate(program));
  TUTTI_ASSIGN(const Setup setup, read_setup(program));
  if (ranks.size() != static_cast<std::size_t>(program.description.ranks)) {
    return malformed(fmt::format("lists of {} ranks, for a program of {}", ranks.size(),
                                 program.description.ranks));
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    TUTTI_TRY(ListValidation(program, setup, static_cast<int>(rank)).run(ranks[rank]));
  }
  return Status::ok();
}

}  // namespace tutti::pipelines
