#include "planning/all_gather_matmul_json.hpp"

#include <fmt/core.h>

#include <array>
#include <limits>
#include <string_view>

#include "planning/table_fields.hpp"

namespace tutti {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostMeasuredRanks = 1 << 20;
constexpr std::size_t kMostMeasuredExtent = std::size_t{1} << 40;
constexpr std::size_t kMostElementBytes = 8;
constexpr std::array<std::string_view, 22> kAllGatherMatmulFields = {"collective",
                                                                     "backend",
                                                                     "gpu",
                                                                     "ranks",
                                                                     "element_bytes",
                                                                     "m",
                                                                     "n",
                                                                     "k",
                                                                     "algorithm",
                                                                     "protocol",
                                                                     "streams",
                                                                     "tiles",
                                                                     "mover",
                                                                     "inter_stream_order",
                                                                     "transport",
                                                                     "time_us",
                                                                     "unfused_us",
                                                                     "runner_up",
                                                                     "runner_up_us",
                                                                     "date",
                                                                     "driver",
                                                                     "samples"};

std::string id_of(AllGatherMatmulAlgorithm algorithm) {
  return fmt::format("{}/{}", kAllGatherMatmul, to_string(algorithm));
}

// Options stand there for the algorithms that have them, and for no others.
AllGatherMatmulWay read_way(TableFields& fields) {
  AllGatherMatmulWay way;
  way.algorithm = fields.name("algorithm", parse_all_gather_matmul_algorithm, way.algorithm);
  if (!fields.status().is_ok()) return way;
  const bool pipelined = is_pipelined(way.algorithm);
  const bool tiled = way.algorithm == AllGatherMatmulAlgorithm::kPipelinedTiles;
  const bool fused = way.algorithm == AllGatherMatmulAlgorithm::kFused;
  for (const auto& [field, has] :
       {std::pair("protocol", pipelined), std::pair("streams", pipelined),
        std::pair("tiles", tiled), std::pair("mover", pipelined),
        std::pair("inter_stream_order", pipelined), std::pair("transport", fused)}) {
    if (!has && fields.has(field)) {
      fields.fail(field, fmt::format("is no option of {}", to_string(way.algorithm)));
    }
  }
  if (fields.has("transport")) {
    way.transport =
        fields.name("transport", parse_arrival_transport, ArrivalTransport::kCopyEngine);
  }
  if (!pipelined) return way;
  way.protocol = fields.name("protocol", pipelines::parse_protocol, way.protocol);
  way.streams = fields.integer<int>("streams", 1, pipelines::kMostPipelineStreams);
  if (tiled) way.tiles = fields.integer<int>("tiles", 1, pipelines::kMostPipelineTiles);
  if (fields.has("mover")) way.mover = fields.name("mover", pipelines::parse_mover, way.mover);
  if (fields.has("inter_stream_order")) {
    way.inter_stream_order = fields.boolean("inter_stream_order");
  }
  return way;
}

// Each is the size of a matrix.
AllGatherMatmulSize read_size(TableFields& fields) {
  return {.m = fields.integer<std::size_t>("m", 1, kMostMeasuredExtent),
          .n = fields.integer<std::size_t>("n", 1, kMostMeasuredExtent),
          .k = fields.integer<std::size_t>("k", 1, kMostMeasuredExtent)};
}

void read_runner_up(TableFields& fields, AllGatherMatmulEntry& entry) {
  if (!fields.has("runner_up")) {
    if (fields.has("runner_up_us")) {
      fields.fail("runner_up_us", "is the time of a runner-up that is not named");
    }
    return;
  }
  entry.runner_up = fields.name("runner_up", parse_all_gather_matmul_algorithm, entry.runner_up);
  entry.runner_up_us = fields.microseconds("runner_up_us");
  if (entry.runner_up_us == 0) fields.fail("runner_up_us", "must be more than 0");
  if (entry.runner_up == entry.way.algorithm ||
      entry.runner_up == AllGatherMatmulAlgorithm::kUnfused) {
    fields.fail("runner_up", "must be an algorithm apart from the fastest one and unfused");
  }
}

// An entry never makes a call slower than unfused.
void check_measured(TableFields& fields, const AllGatherMatmulEntry& entry) {
  if (entry.backend == Backend::kAuto) fields.fail("backend", "must be host or cuda");
  if (entry.backend == Backend::kCuda && entry.gpu.empty()) {
    fields.fail("gpu", "must name the GPU that was measured");
  }
  if (entry.backend == Backend::kHost && !entry.gpu.empty()) {
    fields.fail("gpu", "must be absent for the host backend");
  }
  const bool unfused = entry.way.algorithm == AllGatherMatmulAlgorithm::kUnfused;
  if (unfused && entry.time_us != entry.unfused_us) {
    fields.fail("unfused_us", "must be time_us, since unfused was the fastest");
  } else if (entry.time_us > entry.unfused_us) {
    fields.fail("unfused_us", fmt::format("is {}, less than time_us, {}: then unfused is the "
                                          "algorithm to name",
                                          entry.unfused_us, entry.time_us));
  }
}

}  // namespace

bool is_all_gather_matmul_entry(const Json& json) {
  if (!json.is_object()) return false;
  const auto found = json.find("collective");
  return found != json.end() && *found == kAllGatherMatmul;
}

Result<AllGatherMatmulEntry> parse_all_gather_matmul_entry(const Json& json) {
  TableFields fields(json, kAllGatherMatmulFields);
  AllGatherMatmulEntry entry;
  entry.backend = fields.name("backend", parse_backend, entry.backend);
  entry.gpu = fields.text("gpu", true);
  entry.ranks = fields.integer<int>("ranks", 1, kMostMeasuredRanks);
  entry.element_bytes = fields.integer<std::size_t>("element_bytes", 1, kMostElementBytes);
  entry.size = read_size(fields);
  entry.way = read_way(fields);
  entry.time_us = fields.microseconds("time_us");
  entry.unfused_us = fields.microseconds("unfused_us");
  read_runner_up(fields, entry);
  entry.date = fields.text("date");
  entry.driver = fields.text("driver", entry.backend == Backend::kHost);
  entry.samples = fields.integer<int>("samples", 1, std::numeric_limits<int>::max());
  check_measured(fields, entry);
  if (!fields.status().is_ok()) return fields.status();
  return entry;
}

Json to_json_value(const AllGatherMatmulEntry& entry) {
  Json json;
  json["collective"] = kAllGatherMatmul;
  json["backend"] = to_string(entry.backend);
  if (!entry.gpu.empty()) json["gpu"] = entry.gpu;
  json["ranks"] = entry.ranks;
  json["element_bytes"] = entry.element_bytes;
  json["m"] = entry.size.m;
  json["n"] = entry.size.n;
  json["k"] = entry.size.k;
  json["algorithm"] = id_of(entry.way.algorithm);
  if (is_pipelined(entry.way.algorithm)) {
    json["protocol"] = to_string(entry.way.protocol);
    json["streams"] = entry.way.streams;
    if (entry.way.algorithm == AllGatherMatmulAlgorithm::kPipelinedTiles) {
      json["tiles"] = entry.way.tiles;
    }
    // Absent: as before these options.
    if (entry.way.mover != pipelines::Mover::kCopyEngine) {
      json["mover"] = to_string(entry.way.mover);
    }
    if (entry.way.inter_stream_order) json["inter_stream_order"] = true;
  }
  if (entry.way.transport) json["transport"] = to_string(*entry.way.transport);
  json["time_us"] = entry.time_us;
  json["unfused_us"] = entry.unfused_us;
  if (entry.runner_up_us > 0) {
    json["runner_up"] = id_of(entry.runner_up);
    json["runner_up_us"] = entry.runner_up_us;
  }
  json["date"] = entry.date;
  if (!entry.driver.empty()) json["driver"] = entry.driver;
  json["samples"] = entry.samples;
  return json;
}

}  // namespace tutti
