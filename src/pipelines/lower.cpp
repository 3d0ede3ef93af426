#include "pipelines/lower.hpp"

#include <set>
#include <utility>

#include "base/try.hpp"
#include "pipelines/order.hpp"
#include "pipelines/print.hpp"
#include "pipelines/validate.hpp"

namespace tutti::pipelines {
namespace {

enum class End : std::uint8_t { kSender, kReceiver };

class Lowering {
 public:
  Lowering(const Program& program, int rank) : program_(program), rank_(rank) {
    values_[static_cast<std::size_t>(Variable::kRank)] = rank;
  }

  std::vector<Instruction> run() {
    visit_all(program_.call);
    return std::move(list_);
  }

 private:
  void visit_all(const Nodes& nodes) {
    for (const Node& node : nodes) {
      node_ = &node;
      std::visit([this](const auto& value) { visit(value); }, node.value);
    }
  }

  void visit(const SetCurrentStream& node) { stream_ = node.stream.at(values_); }
  void visit(const Synchronize& node) {
    add(node.waiting.at(values_), WaitForStream{node.on.at(values_)});
  }
  void visit(const Allocate&) {}  // of the setup
  void visit(const ShareHandles&) {}
  void visit(const Copy& node) {
    add(stream_, Move{place(rank_, node.from), place(rank_, node.to)});
  }
  void visit(const SendPost& node) { post(node.transfer, End::kSender); }
  void visit(const RecvPost& node) { post(node.transfer, End::kReceiver); }
  void visit(const SendWait& node) { wait(node.transfer, End::kSender); }
  void visit(const RecvWait& node) { wait(node.transfer, End::kReceiver); }
  void visit(const Matmul& node) { add(stream_, multiply(node)); }
  void visit(const For& node) {
    int& value = values_[static_cast<std::size_t>(node.variable)];
    for (value = node.first; value <= node.last; ++value) visit_all(node.body);
  }
  void visit(const If& node) {
    visit_all(node.index.at(values_) < node.less_than ? node.then : node.otherwise);
  }

  bool moves(End end) const {
    return (program_.description.protocol == Protocol::kGet) == (end == End::kReceiver);
  }

  void post(const Transfer& transfer, End end) {
    const int peer = transfer.peer.at(values_);
    const int ready = transfer.ready.at(values_), done = transfer.done.at(values_);
    if (!moves(end)) {
      add(stream_, Signal{{peer, WordKind::kReady, rank_, ready}});
      return;
    }
    const Place local = place(rank_, transfer.local);
    const Place remote = place(peer, *transfer.remote);
    add(stream_, Await{{rank_, WordKind::kReady, peer, ready}});
    add(stream_, end == End::kReceiver ? Move{remote, local} : Move{local, remote});
    add(stream_, Signal{{peer, WordKind::kDone, rank_, done}});
  }

  void wait(const Transfer& transfer, End end) {
    if (moves(end)) return;
    const int peer = transfer.peer.at(values_), done = transfer.done.at(values_);
    add(stream_, Await{{rank_, WordKind::kDone, peer, done}});
  }

  Place place(int rank, const Slice& slice) const {
    return {rank, slice.buffer, rows_of(program_, slice, values_)};
  }

  Multiply multiply(const Matmul& node) const {
    Slice c = node.a;  // all outputs have the same rows
    if (!program_.products.empty()) c.buffer = program_.products.front().c;
    return {place(rank_, node.a), rows_of(program_, c, values_)};
  }

  template <class Action>
  void add(int stream, Action action) {
    list_.push_back({stream, std::move(action), node_text(program_, *node_, values_)});
  }

  const Program& program_;
  const int rank_;
  Bindings values_ = {};
  int stream_ = kCallerStream;
  const Node* node_ = nullptr;
  std::vector<Instruction> list_;
};

}  // namespace

std::size_t words_per_rank(const Program& program) {
  return 2 * static_cast<std::size_t>(program.description.ranks) *
         static_cast<std::size_t>(program.words);
}

std::size_t position_of(const Word& word, const Program& program) {
  const auto ranks = static_cast<std::size_t>(program.description.ranks);
  const auto words = static_cast<std::size_t>(program.words);
  const std::size_t writer =
      (word.kind == WordKind::kDone ? ranks : 0) + static_cast<std::size_t>(word.writer);
  return writer * words + static_cast<std::size_t>(word.index);
}

Result<std::vector<std::vector<Instruction>>> lower(const Program& program) {
  TUTTI_TRY(validate(program));
  std::vector<std::vector<Instruction>> ranks;
  ranks.reserve(static_cast<std::size_t>(program.description.ranks));
  for (int rank = 0; rank < program.description.ranks; ++rank) {
    ranks.push_back(Lowering(program, rank).run());
  }
  TUTTI_TRY(validate(program, ranks));
  std::set<const Instruction*> implied;
  TUTTI_TRY(execute(ranks, 1, [&](const Moment& moment) {
    if (moment.implied) implied.insert(moment.event.instruction);
    return Status::ok();
  }));
  for (std::vector<Instruction>& list : ranks) {
    std::vector<Instruction> kept;
    for (Instruction& instruction : list) {
      if (!implied.contains(&instruction)) kept.push_back(std::move(instruction));
    }
    list = std::move(kept);
  }
  return ranks;
}

}  // namespace tutti::pipelines
