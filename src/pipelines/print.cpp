#include "pipelines/print.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace tutti::pipelines {
namespace {

constexpr std::string_view kVariableNames[kVariables] = {"rank", "step", "t", "i"};

std::string sum_text(const Index& index) {
  std::string text;
  for (std::size_t i = 0; i < kVariables; ++i) {
    for (int times = 0; times < std::abs(index.factors[i]); ++times) {
      const bool minus = index.factors[i] < 0;
      text += text.empty() ? (minus ? "-" : "") : (minus ? " - " : " + ");
      text += kVariableNames[i];
    }
  }
  if (text.empty()) return std::to_string(index.offset);
  if (index.offset == 0) return text;
  return fmt::format("{} {} {}", text, index.offset < 0 ? '-' : '+', std::abs(index.offset));
}

class NodeText {
 public:
  NodeText(const Program& program, const std::optional<Bindings>& values)
      : program_(program), values_(values) {}

  std::string operator()(const SetCurrentStream& node) const {
    return fmt::format("SetCurrentStream({})", stream(node.stream));
  }
  std::string operator()(const Synchronize& node) const {
    return fmt::format("Synchronize({} waits for {})", stream(node.waiting), stream(node.on));
  }
  std::string operator()(const Allocate& node) const {
    return fmt::format("Allocate({})", name(node.buffer));
  }
  std::string operator()(const ShareHandles& node) const {
    std::string names;
    for (const BufferId id : node.buffers) names += (names.empty() ? "" : ", ") + name(id);
    return fmt::format("ShareHandles({})", names);
  }
  std::string operator()(const Copy& node) const {
    return fmt::format("Copy({} -> {})", slice(node.from), slice(node.to));
  }
  std::string operator()(const SendPost& node) const { return send("SendPost", node.transfer); }
  std::string operator()(const SendWait& node) const { return send("SendWait", node.transfer); }
  std::string operator()(const RecvPost& node) const { return receive("RecvPost", node.transfer); }
  std::string operator()(const RecvWait& node) const { return receive("RecvWait", node.transfer); }
  std::string operator()(const Matmul& node) const {
    std::string outputs, factors;
    for (const Product& product : program_.products) {
      Slice c = node.a;
      c.buffer = product.c;
      const std::string_view separator = outputs.empty() ? "" : ", ";
      outputs += fmt::format("{}{}", separator, slice(c));
      factors += fmt::format("{}{}", separator, name(product.b));
      if (product.bias != kNoBuffer) factors += " + " + name(product.bias);
    }
    return fmt::format("{} = Matmul({}, {})", outputs, slice(node.a), factors);
  }
  std::string operator()(const For& node) const {
    return fmt::format("FOR {} in {}..{}:", kVariableNames[static_cast<std::size_t>(node.variable)],
                       node.first, node.last);
  }
  std::string operator()(const If& node) const {
    return fmt::format("IF {} < {}:", index(node.index), node.less_than);
  }

 private:
  std::string index(const Index& value) const { return index_text(value, values_); }
  std::string name(BufferId id) const {
    return program_.buffers[static_cast<std::size_t>(id)].name;
  }

  std::string stream(const Index& value) const {
    return value == constant(kCallerStream) ? "caller" : "stream " + index(value);
  }

  // The only shard that a buffer has is not named.
  std::string slice(const Slice& slice) const {
    const Buffer& buffer = program_.buffers[static_cast<std::size_t>(slice.buffer)];
    const bool sharded = buffer.part != Part::kShard;
    std::string rows;
    if (slice.tile) rows = "tile " + index(*slice.tile);
    if (sharded && slice.shard)
      rows += (rows.empty() ? "shard " : " of shard ") + index(*slice.shard);
    if (sharded && !slice.shard && slice.tile) rows += " of all shards";
    return rows.empty() ? buffer.name : fmt::format("{}[{}]", buffer.name, rows);
  }

  // The peer's slice is named if it is another one than this rank's.
  std::string remote(const Transfer& transfer) const {
    const std::string rank = "rank " + index(transfer.peer);
    const bool same = !transfer.remote || *transfer.remote == transfer.local;
    return same ? rank : fmt::format("{} of {}", slice(*transfer.remote), rank);
  }
  std::string send(std::string_view verb, const Transfer& transfer) const {
    return fmt::format("{}({} -> {})", verb, slice(transfer.local), remote(transfer));
  }
  std::string receive(std::string_view verb, const Transfer& transfer) const {
    return fmt::format("{}({} <- {})", verb, slice(transfer.local), remote(transfer));
  }

  const Program& program_;
  const std::optional<Bindings>& values_;
};

// What an end of a transfer waits for and writes. The words are those between this rank and the
// peer that the node names.
class TransferNote {
 public:
  explicit TransferNote(const Program& program)
      : get_(program.description.protocol == Protocol::kGet),
        mover_(to_string(program.description.mover)) {}

  std::string operator()(const SendPost& node) const {
    return get_ ? allow(node.transfer) : move(node.transfer);
  }
  std::string operator()(const RecvPost& node) const {
    return get_ ? move(node.transfer) : allow(node.transfer);
  }
  std::string operator()(const SendWait& node) const { return wait(node.transfer); }
  std::string operator()(const RecvWait& node) const { return wait(node.transfer); }
  template <class Other>
  std::string operator()(const Other&) const {
    return {};
  }

 private:
  static std::string allow(const Transfer& transfer) {
    return fmt::format("writes the pair's ready[{}]", index_text(transfer.ready));
  }
  std::string move(const Transfer& transfer) const {
    return fmt::format("waits for the pair's ready[{}], {} moves, writes the pair's done[{}]",
                       index_text(transfer.ready), mover_, index_text(transfer.done));
  }
  static std::string wait(const Transfer& transfer) {
    return fmt::format("waits for the pair's done[{}]", index_text(transfer.done));
  }

  bool get_;
  std::string_view mover_;
};

void print_nodes(const Program& program, const Nodes& nodes, const std::string& indent,
                 std::string& text) {
  for (const Node& node : nodes) {
    const std::string note = std::visit(TransferNote(program), node.value);
    text += fmt::format("{}{}{}{}\n", indent, node_text(program, node, {}),
                        note.empty() ? "" : "  # ", note);
    if (const auto* loop = std::get_if<For>(&node.value)) {
      print_nodes(program, loop->body, indent + "  ", text);
    } else if (const auto* condition = std::get_if<If>(&node.value)) {
      print_nodes(program, condition->then, indent + "  ", text);
      if (condition->otherwise.empty()) continue;
      text += indent + "ELSE:\n";
      print_nodes(program, condition->otherwise, indent + "  ", text);
    }
  }
}

std::string buffers_text(const Program& program, Role role) {
  std::string text;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.role != role) continue;
    text += fmt::format("{}{} [{}, {}]", text.empty() ? "" : ", ", buffer.name, buffer.rows,
                        buffer.columns);
  }
  return text;
}

std::string header_text(const Program& program) {
  const Description& d = program.description;
  std::string text =
      fmt::format("all_gather_matmul/{}: {} by {}, inter-stream order {}\n", to_string(d.algorithm),
                  to_string(d.protocol), to_string(d.mover), d.inter_stream_order ? "on" : "off");
  text += fmt::format("({}) -> ({}), {}\n", buffers_text(program, Role::kInput),
                      buffers_text(program, Role::kOutput), to_string(d.dtype));
  const auto count = [](std::size_t number, std::string_view what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  const bool even = shard_rows(d, d.ranks - 1).count() == shard_rows(d, 0).count();
  text += fmt::format("A over {}: {} each{}; ", count(static_cast<std::size_t>(d.ranks), "rank"),
                      count(shard_rows(d, 0).count(), "row"), even ? "" : ", the last ones fewer");
  if (d.algorithm == Algorithm::kTiles) {
    text += fmt::format("shards in {} of {}, tiles over ",
                        count(static_cast<std::size_t>(d.tiles), "tile"),
                        count(tile_rows(d, 0, 0).count(), "row"));
  } else {
    text += "shards over ";
  }
  return text + count(static_cast<std::size_t>(program.streams), "stream") + "\n";
}

}  // namespace

std::string index_text(const Index& index, const std::optional<Bindings>& values) {
  if (values) return std::to_string(index.at(*values));
  const std::string sum = sum_text(index);
  if (index.modulus == 0) return sum;
  const bool compound = sum.find(' ') != std::string::npos;
  return fmt::format("{}{}{} mod {}", compound ? "(" : "", sum, compound ? ")" : "", index.modulus);
}

std::string word_text(const Word& word) {
  return fmt::format("{}[{}]", word.kind == WordKind::kReady ? "ready" : "done", word.index);
}

std::string stream_text(int stream) {
  return stream == kCallerStream ? "the caller's stream" : fmt::format("stream {}", stream);
}

std::string node_text(const Program& program, const Node& node,
                      const std::optional<Bindings>& values) {
  return std::visit(NodeText(program, values), node.value);
}

std::string place_text(const Program& program, const Place& place) {
  std::string rows;
  for (const Rows& range : place.rows) {
    rows += fmt::format("{}{}:{}", rows.empty() ? "" : ", ", range.begin, range.end);
  }
  return fmt::format("{}[{}] of rank {}",
                     program.buffers[static_cast<std::size_t>(place.buffer)].name, rows,
                     place.rank);
}

std::string action_text(const Instruction& instruction) {
  if (const auto* wait = std::get_if<WaitForStream>(&instruction.action)) {
    return "waits for " + stream_text(wait->on);
  }
  if (const auto* await = std::get_if<Await>(&instruction.action)) {
    return fmt::format("waits for {} from rank {}", word_text(await->word), await->word.writer);
  }
  if (const auto* signal = std::get_if<Signal>(&instruction.action)) {
    return fmt::format("writes {} of rank {}", word_text(signal->word), signal->word.rank);
  }
  return {};
}

std::string print(const Program& program) {
  std::string text = header_text(program);
  if (!program.setup.empty()) text += "ONCE:\n";
  print_nodes(program, program.setup, "  ", text);
  text += "EACH CALL:\n";
  print_nodes(program, program.call, "  ", text);
  if (program.description.ranks == 1) return text;
  const bool get = program.description.protocol == Protocol::kGet;
  text += "Each pair of sender and receiver has its own words:\n";
  text += fmt::format("ready: written by the {}, which allows the transfer\n",
                      get ? "sender" : "receiver");
  return text + fmt::format("done: written by the {}, which has moved the data\n",
                            get ? "receiver" : "sender");
}

std::string print(const Program& program, std::span<const Instruction> instructions) {
  std::string text;
  for (const Instruction& instruction : instructions) {
    std::string what = action_text(instruction);
    if (const auto* move = std::get_if<Move>(&instruction.action)) {
      const bool between = move->from.rank != move->to.rank;
      const std::string_view mover = to_string(program.description.mover);
      what = fmt::format("{} {} to {}", between ? fmt::format("{} moves", mover) : "copies",
                         place_text(program, move->from), place_text(program, move->to));
    } else if (std::holds_alternative<Multiply>(instruction.action)) {
      what = instruction.node;
    }
    const std::string stream =
        instruction.stream == kCallerStream ? "caller" : std::to_string(instruction.stream);
    text += fmt::format("  {:>6}  {}\n", stream, what);
  }
  return text;
}

}  // namespace tutti::pipelines
