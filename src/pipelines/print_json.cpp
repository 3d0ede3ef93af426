#include <nlohmann/json.hpp>

#include "pipelines/print.hpp"

namespace tutti::pipelines {
namespace {

using Json = nlohmann::ordered_json;

std::string_view role_name(Role role) {
  if (role == Role::kInput) return "input";
  return role == Role::kOutput ? "output" : "workspace";
}

Json nodes_json(const Program& program, const Nodes& nodes);

// A node's own members. Indices are the texts that the listing has.
class NodeJson {
 public:
  explicit NodeJson(const Program& program) : program_(program) {}

  Json operator()(const SetCurrentStream& node) const {
    return {{"node", "SetCurrentStream"}, {"stream", stream(node.stream)}};
  }
  Json operator()(const Synchronize& node) const {
    return {{"node", "Synchronize"}, {"waiting", stream(node.waiting)}, {"on", stream(node.on)}};
  }
  Json operator()(const Allocate& node) const {
    return {{"node", "Allocate"}, {"buffer", name(node.buffer)}};
  }
  Json operator()(const ShareHandles& node) const {
    Json buffers = Json::array();
    for (const BufferId id : node.buffers) buffers.push_back(name(id));
    return {{"node", "ShareHandles"}, {"buffers", buffers}};
  }
  Json operator()(const Copy& node) const {
    return {{"node", "Copy"}, {"from", slice(node.from)}, {"to", slice(node.to)}};
  }
  Json operator()(const SendPost& node) const { return transfer("SendPost", node.transfer); }
  Json operator()(const RecvPost& node) const { return transfer("RecvPost", node.transfer); }
  Json operator()(const SendWait& node) const { return transfer("SendWait", node.transfer); }
  Json operator()(const RecvWait& node) const { return transfer("RecvWait", node.transfer); }
  Json operator()(const Matmul& node) const {
    Json products = Json::array();
    for (const Product& product : program_.products) {
      Json names = {{"b", name(product.b)}, {"c", name(product.c)}};
      if (product.bias != kNoBuffer) names["bias"] = name(product.bias);
      products.push_back(names);
    }
    return {{"node", "Matmul"}, {"a", slice(node.a)}, {"products", products}};
  }
  Json operator()(const For& node) const {
    return {{"node", "For"},
            {"variable", index_text(variable(node.variable))},
            {"first", node.first},
            {"last", node.last},
            {"body", nodes_json(program_, node.body)}};
  }
  Json operator()(const If& node) const {
    return {{"node", "If"},
            {"index", index_text(node.index)},
            {"less_than", node.less_than},
            {"then", nodes_json(program_, node.then)},
            {"otherwise", nodes_json(program_, node.otherwise)}};
  }

 private:
  std::string name(BufferId id) const {
    return program_.buffers[static_cast<std::size_t>(id)].name;
  }
  static std::string stream(const Index& index) {
    return index == constant(kCallerStream) ? "caller" : index_text(index);
  }
  Json slice(const Slice& slice) const {
    Json value = {{"buffer", name(slice.buffer)}};
    if (slice.shard) value["shard"] = index_text(*slice.shard);
    if (slice.tile) value["tile"] = index_text(*slice.tile);
    return value;
  }
  Json transfer(std::string_view what, const Transfer& transfer) const {
    Json value = {{"node", what},
                  {"peer", index_text(transfer.peer)},
                  {"local", slice(transfer.local)},
                  {"ready", index_text(transfer.ready)},
                  {"done", index_text(transfer.done)}};
    if (transfer.remote) value["remote"] = slice(*transfer.remote);
    return value;
  }

  const Program& program_;
};

Json nodes_json(const Program& program, const Nodes& nodes) {
  Json list = Json::array();
  for (const Node& node : nodes) list.push_back(std::visit(NodeJson(program), node.value));
  return list;
}

Json place_json(const Program& program, const Place& place) {
  Json rows = Json::array();
  for (const Rows& range : place.rows) rows.push_back({range.begin, range.end});
  return {{"rank", place.rank},
          {"buffer", program.buffers[static_cast<std::size_t>(place.buffer)].name},
          {"rows", rows}};
}

Json word_json(std::string_view what, const Word& word) {
  return {{"do", what},
          {"word", word.kind == WordKind::kReady ? "ready" : "done"},
          {"index", word.index},
          {"writer", word.writer},
          {"rank", word.rank}};
}

class ActionJson {
 public:
  explicit ActionJson(const Program& program) : program_(program) {}

  Json operator()(const WaitForStream& action) const {
    return {{"do", "wait_for_stream"}, {"on", action.on}};
  }
  Json operator()(const Await& action) const { return word_json("await", action.word); }
  Json operator()(const Signal& action) const { return word_json("signal", action.word); }
  Json operator()(const Move& action) const {
    Json value = {{"do", "copy"}};
    if (action.from.rank != action.to.rank) {
      value = {{"do", "move"}, {"mover", to_string(program_.description.mover)}};
    }
    value["from"] = place_json(program_, action.from);
    value["to"] = place_json(program_, action.to);
    return value;
  }
  Json operator()(const Multiply& action) const {
    Json outputs = Json::array();
    for (const Product& product : program_.products) {
      outputs.push_back(place_json(program_, {action.a.rank, product.c, action.c}));
    }
    return {{"do", "matmul"}, {"a", place_json(program_, action.a)}, {"c", outputs}};
  }

 private:
  const Program& program_;
};

}  // namespace

Json to_json(const Program& program) {
  const Description& d = program.description;
  Json value = {{"algorithm", to_string(d.algorithm)},
                {"ranks", d.ranks},
                {"m", d.m},
                {"k", d.k},
                {"dtype", tutti::to_string(d.dtype)},
                {"protocol", to_string(d.protocol)},
                {"mover", to_string(d.mover)},
                {"streams", program.streams},
                {"inter_stream_order", d.inter_stream_order},
                {"symmetric_a", d.symmetric_a},
                {"gathered", d.gathered},
                {"symmetric_gathered", d.symmetric_gathered},
                {"words", program.words},
                {"words_per_rank", words_per_rank(program)},
                {"workspace_bytes", workspace_bytes(program)}};
  if (d.algorithm == Algorithm::kTiles) value["tiles"] = d.tiles;
  value["buffers"] = Json::array();
  for (const Buffer& buffer : program.buffers) {
    value["buffers"].push_back({{"name", buffer.name},
                                {"rows", buffer.rows},
                                {"columns", buffer.columns},
                                {"role", role_name(buffer.role)},
                                {"symmetric", buffer.is_symmetric}});
  }
  value["once"] = nodes_json(program, program.setup);
  value["each_call"] = nodes_json(program, program.call);
  return value;
}

Json to_json(const Program& program, std::span<const Instruction> instructions) {
  Json list = Json::array();
  for (const Instruction& instruction : instructions) {
    Json value = {{"stream", instruction.stream}, {"node", instruction.node}};
    value.update(std::visit(ActionJson(program), instruction.action));
    list.push_back(value);
  }
  return list;
}

}  // namespace tutti::pipelines
