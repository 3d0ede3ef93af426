// What is chosen, against all that was measured: in no cell of results/ is it more than 5 % behind
// the best row there.
//
// A cell is a file, a mode, a number of ranks and a size. Tables stand for graphs; a call outside
// of one takes the same row, and is held to the same 5 %. What `auto` may not take in that place is
// no rival: what is emulated, and NCCL's rows that cannot be aborted in the version of NCCL that
// ran.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/knobs.hpp"
#include "base/units.hpp"
#include "executors/peer/layout.hpp"
#include "executors/peer/one_sided.hpp"
#include "planning/choose.hpp"
#include "planning/filter.hpp"
#include "planning/model.hpp"
#include "unit/planning/entries.hpp"

namespace tutti {
namespace {

using Json = nlohmann::json;

constexpr double kBehind = 1.05;

struct MeasuredCell {
  std::string file, collective, mode, nccl;
  int ranks = 0;
  std::size_t bytes = 0, hidden = 0;
  DataType dtype = DataType::kBfloat16;
  std::map<std::string, double> us;  // by the row's name

  std::string name() const {
    return fmt::format("{}: {}, {}, {} ranks, {} bytes", file, collective, mode, ranks, bytes);
  }
};

int version_number(const std::string& text) {
  int major = 0, minor = 0, patch = 0;
  EXPECT_EQ(std::sscanf(text.c_str(), "%d.%d.%d", &major, &minor, &patch), 3) << text;
  return 10000 * major + 100 * minor + patch;
}

// Other libraries' times, what was published, and what runs with a matmul, are no cells.
void read_cells(const std::filesystem::path& path, std::vector<MeasuredCell>& cells) {
  std::ifstream stream(path);
  const Json results = Json::parse(stream);
  if (!results.contains("environment")) return;
  if (results.at("environment").at("gpu") != "NVIDIA H200") return;
  std::map<std::tuple<std::string, std::string, int, std::size_t>, MeasuredCell> found;
  for (const Json& row : results.at("rows")) {
    if (row.at("backend") != "cuda" || row.at("buffers") != "symmetric") continue;
    if (row.at("in_place") != false || row.at("chained") != false) continue;
    if (row.contains("matmul")) continue;
    const std::string collective = row.at("collective"), mode = row.at("mode");
    const std::string algorithm = row.at("algorithm");
    if (collective == "overlap" || algorithm.starts_with("torch")) continue;
    MeasuredCell& cell = found[{collective, mode, row.at("ranks"), row.at("bytes")}];
    cell.file = path.parent_path().filename() / path.filename();
    cell.nccl = results.at("environment").at("nccl");
    cell.collective = collective;
    cell.mode = mode;
    cell.ranks = row.at("ranks");
    cell.bytes = row.at("bytes");
    cell.hidden = row.value("hidden", std::size_t{0});
    cell.dtype = *parse_data_type(row.at("dtype").get<std::string>());
    cell.us[algorithm] = row.at("time_us").at("p50");
  }
  for (auto& [where, cell] : found) cells.push_back(std::move(cell));
}

const std::vector<MeasuredCell>& measured_cells() {
  static const std::vector<MeasuredCell> all = [] {
    std::vector<MeasuredCell> cells;
    for (const auto& file : std::filesystem::recursive_directory_iterator(TUTTI_RESULTS)) {
      if (file.path().extension() == ".json") read_cells(file.path(), cells);
    }
    return cells;
  }();
  return all;
}

bool is_one_sided(const MeasuredCell& cell) {
  return cell.collective == "put" || cell.collective == "get";
}

Topology machine_in(const MeasuredCell& cell) {
  Topology topology = eight_h200();
  topology.ranks = cell.ranks;
  topology.nccl_version = version_number(cell.nccl);
  return topology;
}

// As the command that measured it made its calls.
Request asked_in(const MeasuredCell& cell) {
  const Layout layout = layout_from(Knobs::process(), true);
  const int area = cell.mode == "graph" ? 1 : 0;
  Request request;
  request.collective = *parse_collective(cell.collective);
  request.dtype = cell.dtype;
  request.count = cell.bytes / size_of(cell.dtype);
  request.hidden = cell.hidden;
  request.capturing = area == 1;
  request.staging_bytes = layout.staging_size(area);
  request.packet_bytes = layout.packet_room(area);
  request.ring_bytes = layout.ring_bytes(area);
  return request;
}

std::string chosen_in(const MeasuredCell& cell, const TuningTable& table) {
  if (is_one_sided(cell)) {
    const OneSided kind = cell.collective == "put" ? OneSided::kPut : OneSided::kGet;
    return usual_mover(kind, cell.bytes) == Mover::kKernel ? "kernel" : "copy_engine";
  }
  const auto plan = choose(asked_in(cell), machine_in(cell), table);
  return plan.is_ok() ? std::string(name_of_id(plan->algorithm)) : plan.status().to_string();
}

bool may_be_taken(const MeasuredCell& cell, const std::string& algorithm) {
  if (is_one_sided(cell)) return true;
  const Request request = asked_in(cell);
  const auto row = find_algorithm(request.collective, algorithm);
  return row.is_ok() && why_not_unnamed(**row, request, machine_in(cell)).empty() &&
         why_not_by_itself(**row, request, machine_in(cell), MeasuredWith::kSymmetric).empty();
}

double best_us(const MeasuredCell& cell) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [algorithm, us] : cell.us) {
    if (may_be_taken(cell, algorithm)) best = std::min(best, us);
  }
  return best;
}

struct Compared {
  int cells = 0, unmeasured = 0;
  std::vector<std::string> behind;
};

bool is_narrow(const MeasuredCell& cell) {
  return !is_one_sided(cell) && width_of_pieces(asked_in(cell), machine_in(cell)) < kVectorBytes;
}

// Of cells with pieces of whole vectors, or of the others, those in which the choice takes more
// than `behind` times the best. A row that is chosen and was not there when a file was written has
// no time in it.
Compared compared(const TuningTable& table, bool narrow = false, double behind = kBehind) {
  Compared result;
  for (const MeasuredCell& cell : measured_cells()) {
    if (is_narrow(cell) != narrow) continue;
    const std::string chosen = chosen_in(cell, table);
    const auto own = cell.us.find(chosen);
    if (own == cell.us.end()) {
      ++result.unmeasured;
      continue;
    }
    ++result.cells;
    const double ratio = own->second / best_us(cell);
    if (ratio > behind) {
      result.behind.push_back(
          fmt::format("{}: {} takes {:.2f} times the best", cell.name(), chosen, ratio));
    }
  }
  return result;
}

TEST(Results, WhatIsChosenIsNowhereMoreThanALittleBehindTheBest) {
  const Compared all = compared(*TuningTable::load("", ""));
  for (const std::string& line : all.behind) ADD_FAILURE() << line;
  std::printf("%d cells; in %d more what is chosen was not measured\n", all.cells, all.unmeasured);
  EXPECT_GE(all.cells, 300);
  EXPECT_LE(all.unmeasured, all.cells / 20);
}

// No table is measured with such pieces: the model chooses, as far as tables do not hold.
TEST(Results, WhatIsChosenForOtherPiecesThanWholeVectorsIsNowhereFarBehindTheBest) {
  const Compared all = compared(*TuningTable::load("", ""), true, 1.35);
  for (const std::string& line : all.behind) ADD_FAILURE() << line;
  EXPECT_GE(all.cells, 40);
  EXPECT_EQ(all.unmeasured, 0);
}

// The model alone is not so good: what the test above finds is found.
TEST(Results, NegativeControlWithoutTheTables) {
  EXPECT_GT(compared(TuningTable::empty()).behind.size(), 20u);
}

// What tools/tuning/entries_of_results.py made is what the file holds.
TEST(Results, EntriesThatWereMadeOfThemSayWhatTheyHold) {
  const std::map<std::string, std::string> made = {
      {"send_recv", "h200x2/send_recv.json"},
      {"all_reduce_residual_rms_norm", "h200x4/all_reduce_residual_rms_norm.json"}};
  int compared = 0;
  const TuningTable table = *TuningTable::load("", "");
  for (const MeasuredCell& cell : measured_cells()) {
    const auto file = made.find(cell.collective);
    if (file == made.end() || cell.file != file->second || cell.us.size() < 2) continue;
    if (cell.collective == "all_reduce_residual_rms_norm" && cell.ranks != 4) continue;
    const auto matches =
        table.matches({*parse_collective(cell.collective), cell.bytes}, machine_in(cell));
    ASSERT_FALSE(matches.empty()) << cell.name();
    const TuningEntry& entry = *matches.front().entry;
    EXPECT_EQ(entry.max_bytes, cell.bytes);
    EXPECT_EQ(entry.time_us, cell.us.at(std::string(name_of_id(entry.algorithm))));
    EXPECT_EQ(entry.runner_up_us, cell.us.at(std::string(name_of_id(entry.runner_up))));
    ++compared;
  }
  EXPECT_EQ(compared, 29);
}

}  // namespace
}  // namespace tutti
