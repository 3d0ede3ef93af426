// Links that `tutti model` knows by name, and files that describe others (docs/guides/model.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster_model.hpp"
#include "tutti/status.hpp"

namespace tutti::model {

// How messages over a link are cut into chunks.
enum class Chunks : std::uint8_t {
  kTcp,   // as the network executor cuts them (planning/network_chunks.hpp)
  kRdma,  // likewise
  kRing,  // as kernels of all_reduce/ring do, all of whose blocks send a chunk each at a time
};
std::string_view to_string(Chunks chunks);  // "tcp", "rdma", "ring"

struct Links {
  ClusterModel cluster;  // its nodes and ranks are not of the file
  Chunks chunks = Chunks::kTcp;
  std::string source = {};  // where the numbers are from
  friend bool operator==(const Links&, const Links&) = default;
};

// What a link holds in one direction: its rate times its delay.
std::size_t delay_bytes(const Link& link);

inline constexpr double kMostGbitPerS = 1e6;

std::vector<std::string> preset_names();  // "ib400", ...

// A preset, or what is in the file of that name. kInvalidArgument: one line that says what to do.
Result<Links> find_links(const std::string& preset_or_file);

// kInvalidArgument names `file`, the field, and what it has to be.
Result<Links> links_from_json_text(std::string_view text, std::string_view file);
std::string to_json_text(const Links& links);  // as links_from_json_text() reads it
std::string to_json_line(const Links& links);

}  // namespace tutti::model
