// Programs, as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <span>
#include <string>

#include "pipelines/lower.hpp"

namespace tutti::pipelines {

// "(rank + step) mod 8", or with values of the variables "3".
std::string index_text(const Index& index, const std::optional<Bindings>& values = {});
// "stream 2"; "the caller's stream"
std::string stream_text(int stream);
// "RecvPost(A_gathered[shard (rank + step) mod 8] <- A of rank (rank + step) mod 8)"; of loops and
// conditions the first line.
std::string node_text(const Program& program, const Node& node,
                      const std::optional<Bindings>& values);
// "A_gathered[1024:2048] of rank 3"
std::string place_text(const Program& program, const Place& place);
std::string word_text(const Word& word);  // "ready[0]"
// "waits for ready[0] from rank 3"; empty for moves and matmuls, which their node describes
std::string action_text(const Instruction& instruction);

// The program: what it has and does, with loops and conditions.
std::string print(const Program& program);
// What one rank enqueues in a call, an instruction a line.
std::string print(const Program& program, std::span<const Instruction> instructions);

nlohmann::ordered_json to_json(const Program& program);
nlohmann::ordered_json to_json(const Program& program, std::span<const Instruction> instructions);

}  // namespace tutti::pipelines
