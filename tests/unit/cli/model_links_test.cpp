// Links of `tutti model`: presets, and files of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/links.hpp"
#include "scratch_folder.hpp"

namespace tutti::model {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(const std::string& fields) {
  const std::string text = R"({"schema": "tutti.links/1", )" + fields + "}";
  const auto links = links_from_json_text(text, "link.json");
  return links.is_ok() ? "" : links.status().message();
}

TEST(ModelLinks, PresetsCanBeWrittenAndRead) {
  for (const std::string& name : preset_names()) {
    const auto links = find_links(name);
    ASSERT_TRUE(links.is_ok()) << links.status().to_string();
    EXPECT_EQ(links->cluster.name, name);
    const cli::ScratchFolder folder;
    folder.write("link.json", to_json_text(*links));
    const auto again = find_links(folder / "link.json");
    ASSERT_TRUE(again.is_ok()) << again.status().to_string();
    EXPECT_EQ(*again, *links);
    EXPECT_EQ(*links_from_json_text(to_json_line(*links), "line"), *links);
  }
}

TEST(ModelLinks, EveryFieldIsRead) {
  const auto links = links_from_json_text(
      R"({"schema": "tutti.links/1", "name": "x", "chunks": "rdma", "source": "y",
          "between": {"gbit_per_s": 10, "delay_us": 2, "payload_part": 0.5, "message_bytes": 3,
                      "burst_bytes": 4},
          "within": {"gbit_per_s": 20}, "rails": [1, 0.5],
          "processor": {"start_us": 1, "send_us": 2, "receive_us": 3, "local_us": 4,
                        "copy_gb_per_s": 5, "sum_gb_per_s": 6, "shared": 7}})",
      "link.json");
  ASSERT_TRUE(links.is_ok()) << links.status().to_string();
  const Links expected = {.cluster = {.name = "x",
                                      .between = {10, 2, 0.5, 3, 4},
                                      .within = {.gbit_per_s = 20},
                                      .rails = {1, 0.5},
                                      .processor = {1, 2, 3, 4, 5, 6, 7}},
                          .chunks = Chunks::kRdma,
                          .source = "y"};
  EXPECT_EQ(*links, expected);
  EXPECT_EQ(delay_bytes(links->cluster.between), 2500u);
}

TEST(ModelLinks, AreWithinNodesAsBetweenThemWhereNothingIsSaid) {
  const auto links = links_from_json_text(
      R"({"schema": "tutti.links/1", "between": {"gbit_per_s": 10}})", "link.json");
  ASSERT_TRUE(links.is_ok()) << links.status().to_string();
  EXPECT_EQ(links->cluster.within.gbit_per_s, 10);
}

TEST(ModelLinks, AFileThatIsWrongIsRefusedByFileAndField) {
  const struct {
    const char *fields, *what;
  } kCases[] = {
      {R"("name": "x")", "between is missing"},
      {R"("between": 3)", "between has to be an object"},
      {R"("between": {"delay_us": 1})", "between.gbit_per_s is missing"},
      {R"("between": {"gbit_per_s": 0})",
       "between.gbit_per_s is 0, and has to be a number above 0 and at most 1e+06 Gbit/s"},
      {R"("between": {"gbit_per_s": -1})", "between.gbit_per_s is -1"},
      {R"("between": {"gbit_per_s": 1e300})", "between.gbit_per_s is 1e+300"},
      {R"("between": {"gbit_per_s": 1e999})", "is not JSON: "},
      {R"("between": {"gbit_per_s": "1"})", "between.gbit_per_s has to be a number above 0"},
      {R"("between": {"gbit_per_s": 1, "delay_us": -1})", "between.delay_us is -1"},
      {R"("between": {"gbit_per_s": 1, "payload_part": 1.1})", "between.payload_part is 1.1"},
      {R"("between": {"gbit_per_s": 1, "payload": 1})",
       "unknown field 'between.payload'; did you mean 'payload_part'?"},
      {R"("between": {"gbit_per_s": 1}, "within": {"gbit_per_s": 0})", "within.gbit_per_s is 0"},
      {R"("between": {"gbit_per_s": 1}, "chunks": "udp")", "unknown chunks 'udp'; known are tcp"},
      {R"("between": {"gbit_per_s": 1}, "name": 1)", "name has to be a text"},
      {R"("between": {"gbit_per_s": 1}, "rails": [1, 0])", "rails[1] is 0"},
      {R"("between": {"gbit_per_s": 1}, "rails": 1)", "rails has to be a list"},
      {R"("between": {"gbit_per_s": 1}, "processor": {"send_us": null})", "processor.send_us has"},
      {R"("between": {"gbit_per_s": 1}, "processor": {"shared": 1.5})", "processor.shared has"},
      {R"("between": {"gbit_per_s": 1}, "processor": {"shared": -1})", "processor.shared has"},
      {R"("between": {"gbit_per_s": 1}, "speed": 1)", "unknown field 'speed'"},
      {R"("between": {"gbit_per_s": 1)", "is not JSON: "}};
  for (const auto& [fields, what] : kCases) {
    EXPECT_THAT(error_of(fields), AllOf(StartsWith("link.json: "), HasSubstr(what))) << fields;
  }
  const auto other = links_from_json_text(R"({"schema": "tutti.bench/1"})", "link.json");
  EXPECT_THAT(other.status().message(), HasSubstr("schema is 'tutti.bench/1', and has to be"));
}

TEST(ModelLinks, WhatIsNeitherKnownNorAFileIsRefused) {
  EXPECT_THAT(find_links("ib40").status().message(),
              AllOf(HasSubstr("'ib40' is neither a known link nor a file"),
                    HasSubstr("did you mean 'ib400'?")));
}

}  // namespace
}  // namespace tutti::model
