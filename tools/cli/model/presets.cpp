// Published links. What nobody publishes is an estimate, and says so.
#include <fmt/core.h>

#include <array>

#include "base/names.hpp"
#include "model/links.hpp"
#include "output_file.hpp"

namespace tutti::model {
namespace {

// NVLink 4 of H100 and H200: 18 links of 25 GB/s in each direction, published. 0.795 of it is what
// rings measured with 4 H200s, and 1.35 us one way is what their calibration says
// (results/h200x4/all_reduce.json).
constexpr Link kNvlink4{.gbit_per_s = 3600, .delay_us = 1.35, .payload_part = 0.795};

// ConnectX-7 and Quantum-2. One way about 1.8 us: ib_write_lat's 1 us between two adapters, and
// three switches of a fat tree, 0.2 us each and cables. Frames of 4096 bytes have 26 bytes of
// headers and CRCs. Costs of the processor are estimates of a thread that posts and polls.
Links ib400() {
  return {.cluster = {.name = "ib400",
                      .between = {.gbit_per_s = 400,
                                  .delay_us = 1.8,
                                  .payload_part = 4096.0 / (4096 + 26),
                                  .message_bytes = 16},
                      .within = kNvlink4,
                      .processor =
                          {.start_us = 3, .send_us = 0.3, .receive_us = 0.3, .sum_gb_per_s = 800}},
          .chunks = Chunks::kRdma,
          .source = "published rate and frames; delay and costs of the processor are estimates"};
}

// RoCE v2, frames of 4096 bytes: Ethernet with its gap 38 bytes, IP 20, UDP 8, InfiniBand 16. One
// way about 3 us through two switches, an estimate like the costs of the processor.
Links roce100() {
  return {.cluster = {.name = "roce100",
                      .between = {.gbit_per_s = 100,
                                  .delay_us = 3,
                                  .payload_part = 4096.0 / (4096 + 82),
                                  .message_bytes = 16},
                      .within = kNvlink4,
                      .processor =
                          {.start_us = 3, .send_us = 0.4, .receive_us = 0.4, .sum_gb_per_s = 800}},
          .chunks = Chunks::kRdma,
          .source = "published rate and frames; delay and costs of the processor are estimates"};
}

// TCP in frames of 1500 bytes, 1538 with Ethernet and its gap, 1448 of them payload. One way 20 us
// and the costs of the processor, which copies and adds in host memory, are estimates.
Links tcp25() {
  return {.cluster = {.name = "tcp25",
                      .between = {.gbit_per_s = 25,
                                  .delay_us = 20,
                                  .payload_part = 1448.0 / 1538,
                                  .message_bytes = 64},
                      .within = kNvlink4,
                      .processor = {.start_us = 5,
                                    .send_us = 3,
                                    .receive_us = 3,
                                    .copy_gb_per_s = 10,
                                    .sum_gb_per_s = 8}},
          .chunks = Chunks::kTcp,
          .source = "published rate and frames; delay and costs of the processor are estimates"};
}

// GPUs of one machine, each as a node of one rank, and kernels that go around a ring.
Links nvlink4() {
  return {.cluster =
              {.name = "nvlink4",
               .between = kNvlink4,
               .within = kNvlink4,
               .processor = {.start_us = 3, .send_us = 1, .receive_us = 1, .sum_gb_per_s = 2000}},
          .chunks = Chunks::kRing,
          .source =
              "published rate; delay and payload measured in results/h200x4/all_reduce.json; "
              "the processor is an estimate"};
}

// Network namespaces of one machine, whose two processors all ranks share: where a fit to results
// starts. The rate is that of a token bucket; all numbers are estimates.
Links namespaces() {
  constexpr Link kShaped{.gbit_per_s = 1,
                         .delay_us = 10,
                         .payload_part = 8948.0 / 9014,
                         .message_bytes = 64,
                         .burst_bytes = 4000};
  return {.cluster = {.name = "namespaces",
                      .between = kShaped,
                      .within = kShaped,
                      .processor = {.start_us = 5,
                                    .send_us = 5,
                                    .receive_us = 5,
                                    .copy_gb_per_s = 3,
                                    .sum_gb_per_s = 5,
                                    .shared = 2}},
          .chunks = Chunks::kTcp,
          .source = "estimates"};
}

constexpr std::array<Name<Links (*)()>, 5> kPresets = {{{ib400, "ib400"},
                                                        {roce100, "roce100"},
                                                        {tcp25, "tcp25"},
                                                        {nvlink4, "nvlink4"},
                                                        {namespaces, "namespaces"}}};

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  names.reserve(kPresets.size());
  for (const auto& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

Result<Links> find_links(const std::string& preset_or_file) {
  for (const auto& [make, name] : kPresets) {
    if (name == preset_or_file) return make();
  }
  const auto text = cli::read_file(preset_or_file);
  if (text.is_ok()) return links_from_json_text(*text, preset_or_file);
  std::vector<std::string_view> known;
  known.reserve(kPresets.size());
  for (const auto& preset : kPresets) known.push_back(preset.name);
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("--link: '{}' is neither a known link nor a file ({}){}", preset_or_file,
                  text.status().message(), alternatives(preset_or_file, known)));
}

}  // namespace tutti::model
