// `tutti model`: what it refuses, what it prints, and what it keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "golden.hpp"
#include "model/command.hpp"
#include "model/measured.hpp"
#include "model/sweep.hpp"
#include "output_file.hpp"
#include "report/pages.hpp"
#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

ModelOptions options_of(const ModelArguments& arguments) {
  auto options = check_model_arguments(arguments);
  EXPECT_TRUE(options.is_ok()) << options.status().to_string();
  return options.is_ok() ? *std::move(options) : ModelOptions{};
}

std::string table_of(const ModelOptions& options) {
  std::string text = heading_of(options);
  for (const int nodes : options.nodes) {
    for (const std::size_t bytes : options.bytes) {
      text += text_of(options, simulate_line(options, nodes, bytes));
    }
  }
  return text;
}

ModelArguments golden_arguments(const std::string& collective) {
  ModelArguments arguments{.nodes = "1,2,5", .gpus_per_node = "4", .link = "roce100"};
  arguments.sizes.collective = collective;
  arguments.sizes.bytes = "4K,1M";
  return arguments;
}

// Changed times are a changed model: a commit that changes the file says why. It is what
// `tutti model COLLECTIVE --nodes 1,2,5 --gpus-per-node 4 --link roce100 --bytes 4K,1M` prints,
// less notes, and `tutti model barrier --nodes 2,5 --gpus-per-node 4 --link tcp25`.
TEST(Model, SaysWhatItSaidBefore) {
  std::string text;
  for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                 "broadcast", "reduce", "gather", "scatter"}) {
    text += table_of(options_of(golden_arguments(collective)));
  }
  ModelArguments barrier{.nodes = "2,5", .gpus_per_node = "4", .link = "tcp25"};
  barrier.sizes.collective = "barrier";
  text += table_of(options_of(barrier));
  EXPECT_EQ(text, golden("model.txt"));
}

TEST(Model, RefusesWhatCannotBeRight) {
  ModelArguments good = golden_arguments("all_reduce");
  const auto error_of = [&](auto change) {
    ModelArguments bad = good;
    change(bad);
    const auto options = check_model_arguments(bad);
    return options.is_ok() ? "" : options.status().message();
  };
  using A = ModelArguments;
  EXPECT_EQ(error_of([](A&) {}), "");
  EXPECT_THAT(error_of([](A& a) { a.nodes = "2,0"; }), HasSubstr("--nodes: 0 is not between 1"));
  EXPECT_THAT(error_of([](A& a) { a.nodes = "300000"; }), HasSubstr("--nodes: 300000 is not"));
  EXPECT_THAT(error_of([](A& a) { a.gpus_per_node = "0"; }), HasSubstr("--gpus-per-node: 0"));
  EXPECT_THAT(error_of([](A& a) { a.gpus_per_node = "1"; }), HasSubstr("nobody to talk to"));
  EXPECT_THAT(error_of([](A& a) { a.sizes.bytes = "9223372036854775809"; }), HasSubstr("--bytes"));
  for (const char* rate : {"0", "-1", "inf", "nan", "1e9", "1x", " 1"}) {
    EXPECT_THAT(error_of([&](A& a) { a.gbit_per_s = rate; }),
                HasSubstr(std::string("--gbit-per-s: '") + rate + "' is not a number above 0"));
  }
  EXPECT_THAT(error_of([](A& a) { a.link = "ib"; }), HasSubstr("neither a known link"));
  EXPECT_THAT(error_of([](A& a) { a.algorithms = "network_rin"; }),
              HasSubstr("did you mean 'network_ring'?"));
  EXPECT_THAT(error_of([](A& a) { a.sizes.root = "1"; }), HasSubstr("--root: all_reduce has none"));
  EXPECT_THAT(error_of([](A& a) { a.sizes.collective = "send_recv"; }),
              HasSubstr("send_recv is not modelled over link 'roce100'"));
  EXPECT_THAT(error_of([](A& a) { a.sizes.collective = "all_gather", a.link = "nvlink4"; }),
              HasSubstr("all_gather is not modelled over link 'nvlink4'"));
  EXPECT_THAT(error_of([](A& a) { a.compare = "x.json", a.fit = "x.json"; }),
              HasSubstr("give --compare or --fit"));
}

TEST(Model, KeepsResultsWithTheirLink) {
  const ScratchFolder folder;
  ModelArguments arguments = golden_arguments("all_reduce");
  arguments.output = folder / "model.json";
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_model(arguments, "tutti model all_reduce"), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("- hierarchical with --nodes 1: needs two nodes or more\n"));
  const auto record = record_from_json_text(folder.read("model.json"), "model.json");
  ASSERT_TRUE(record.is_ok()) << record.status().to_string();
  // Three clusters, two sizes; on one node hierarchical is left out.
  const auto algorithms = options_of(golden_arguments("all_reduce")).algorithms;
  EXPECT_EQ(record->rows.size(), 6 * algorithms.size() - 2);
  const auto link = model::links_from_json_text(record->environment.link, "link");
  ASSERT_TRUE(link.is_ok()) << link.status().to_string();
  EXPECT_EQ(link->cluster.name, "roce100");
  const ResultFile file{"results/model/all_reduce.json", "model", "all_reduce", *record};
  EXPECT_THAT(render_docs({file}, "docs/benchmarks.md").front().text,
              HasSubstr("Computed by `tutti model`, not measured, "));
}

// What it has computed itself it finds without an error, with the same chunks.
TEST(Model, ComparesWithResults) {
  ModelArguments arguments = golden_arguments("all_reduce");
  arguments.nodes = "3";
  const ModelOptions options = options_of(arguments);
  Record record;
  for (Row& row : rows_of(options, simulate_line(options, 3, 65536))) {
    record.rows.push_back(std::move(row));
  }
  record.rows.front().time_us.p50 /= 2;
  model::MeasuredFilter filter{options.collective, options.algorithms, options.links.chunks, 4};
  const auto calls = model::measured_calls(record, filter);
  ASSERT_EQ(calls.size(), options.algorithms.size());
  const auto compared = model::compare(calls, options.links, 4);
  ASSERT_TRUE(compared.is_ok()) << compared.status().to_string();
  EXPECT_NEAR(compared->front().error_percent(), 100, 1e-6);
  const model::Errors errors = model::errors_of(*compared);
  EXPECT_NEAR(errors.median_percent, 0, 1e-6);
  EXPECT_NEAR(errors.most_percent, 100, 1e-6);
  filter.ranks_per_node = 5;
  EXPECT_TRUE(model::measured_calls(record, filter).empty());
}

}  // namespace
}  // namespace tutti::cli
