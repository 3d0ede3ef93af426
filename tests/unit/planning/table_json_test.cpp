#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planning/table.hpp"
#include "unit/planning/entries.hpp"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

Json good_entry() {
  return {{"collective", "all_reduce"},
          {"backend", "cuda"},
          {"gpu", "NVIDIA H200"},
          {"ranks", 8},
          {"min_bytes", 0},
          {"max_bytes", 65536},
          {"algorithm", "all_reduce/one_shot"},
          {"time_us", 6.1},
          {"date", "2026-11-20"},
          {"driver", "580.159"},
          {"samples", 50}};
}

Result<TuningEntries> parse_entries(const Json& entries) {
  const Json table = {{"schema", "tutti.tuning/1"}, {"entries", entries}};
  return parse_tuning_json(table.dump(), "mine.json");
}

TEST(TuningJson, RoundTrip) {
  TuningEntry full = entry_of(1, SIZE_MAX, "all_reduce/two_shot", 6);
  full.blocks = 64;
  full.threads = 512;
  full.chunk_bytes = 1 << 20;
  full.time_us = 12.625;
  full.runner_up = "all_reduce/nccl";
  full.runner_up_us = 0.1;
  TuningEntry host = entry_of(0, 100);
  host.backend = Backend::kHost;
  host.gpu.clear();
  host.driver.clear();
  host.cores = 2;
  TuningEntry plain = full;
  plain.plain = true;
  for (const auto& entries :
       {std::vector<TuningEntry>{}, {full}, {full, plain, host, entry_of(0, 0)}}) {
    const auto parsed = parse_tuning_json(write_tuning_json({entries}), "x.json");
    ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
    EXPECT_EQ(parsed->collectives, entries);
  }
}

TEST(TuningJson, OneLinePerEntry) {
  const std::string text = write_tuning_json({{entry_of(0, 1), entry_of(2, 3)}});
  EXPECT_EQ(std::ranges::count(text, '\n'), 7);
  EXPECT_TRUE(parse_entries(Json::array({good_entry()})).is_ok());
}

TEST(TuningJson, ASyntaxErrorNamesFileAndLine) {
  const auto parsed =
      parse_tuning_json("{\n\"schema\": \"tutti.tuning/1\",\n oops\n}", "mine.json");
  ASSERT_FALSE(parsed.is_ok());
  EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(parsed.status().message(), StartsWith("mine.json: line 3"));
}

TEST(TuningJson, WhatIsNotATableIsRefused) {
  for (const char* text : {"", "[]", "null", "{}", "3", R"({"schema": "tutti.bench/1"})",
                           R"({"schema": 1, "entries": []})"}) {
    const auto parsed = parse_tuning_json(text, "mine.json");
    ASSERT_FALSE(parsed.is_ok()) << text;
    EXPECT_THAT(parsed.status().message(), StartsWith("mine.json: "));
  }
  EXPECT_THAT(parse_tuning_json(R"({"schema": "tutti.tuning/1"})", "a").status().message(),
              HasSubstr("'entries' must be a list"));
  EXPECT_THAT(
      parse_tuning_json(R"({"schema": "tutti.tuning/1", "entries": {}})", "a").status().message(),
      HasSubstr("'entries' must be a list"));
}

// Refusing such a value must not cost the stack that copying or printing it would.
TEST(TuningJson, HoweverDeepAValueIsItIsOnlyRefused) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  const std::string entry = R"({"collective": "all_reduce", "backend": "host", "ranks": )" + deep;
  for (const std::string& text : {deep, R"({"schema": )" + deep + "}",
                                  R"({"schema": "tutti.tuning/1", "entries": [)" + entry + "}]}"}) {
    EXPECT_EQ(parse_tuning_json(text, "mine.json").status().code(), StatusCode::kInvalidArgument);
  }
}

TEST(TuningJson, EachRequiredFieldIsMissed) {
  for (const char* field : {"collective", "backend", "gpu", "ranks", "min_bytes", "max_bytes",
                            "algorithm", "time_us", "date", "driver", "samples"}) {
    Json entry = good_entry();
    entry.erase(field);
    const auto parsed = parse_entries(Json::array({good_entry(), entry}));
    ASSERT_FALSE(parsed.is_ok()) << field;
    EXPECT_THAT(parsed.status().message(), StartsWith("mine.json: entry 1: field '"));
    EXPECT_THAT(parsed.status().message(), HasSubstr(std::string("'") + field + "'"));
  }
}

struct Broken {
  const char* field;
  Json value;
};

TEST(TuningJson, EachBrokenFieldIsNamed) {
  const Broken cases[] = {
      {"collective", "all_shout"},
      {"collective", 3},
      {"backend", "tpu"},
      {"backend", "auto"},
      {"gpu", 7},
      {"gpu", ""},
      {"ranks", 0},
      {"ranks", -1},
      {"ranks", 8.5},
      {"ranks", "8"},
      {"ranks", 1 << 21},
      {"min_bytes", -1},
      {"min_bytes", 65537},
      {"max_bytes", "64K"},
      {"algorithm", ""},
      {"algorithm", "one_shot"},
      {"algorithm", "all_gather/ring"},
      {"blocks", -1},
      {"blocks", 1 << 20},
      {"threads", 2048},
      {"chunk_bytes", 0.5},
      {"chunk_bytes", ~std::uint64_t{0} - 14},
      {"time_us", -1},
      {"time_us", "fast"},
      {"runner_up", "nccl"},
      {"runner_up_us", Json()},
      {"date", ""},
      {"samples", 0},
      {"max_byte", 3},
  };
  for (const Broken& broken : cases) {
    Json entry = good_entry();
    entry[broken.field] = broken.value;
    const auto parsed = parse_entries(Json::array({entry}));
    ASSERT_FALSE(parsed.is_ok()) << broken.field << " " << broken.value;
    EXPECT_THAT(parsed.status().message(),
                StartsWith(std::string("mine.json: entry 0: field '") + broken.field + "'"))
        << broken.value;
  }
  EXPECT_THAT(parse_entries(Json::array({3})).status().message(),
              HasSubstr("entry 0: is not an object"));
}

Json published_entry() {
  Json entry = good_entry();
  for (const char* field : {"time_us", "date", "driver", "samples"}) entry.erase(field);
  entry["algorithm"] = "all_reduce/multicast";
  entry["runner_up"] = "all_reduce/two_shot";
  entry["provenance"] = "published";
  entry["source"] = "a paper";
  return entry;
}

TEST(TuningJson, WhatIsPublishedNamesFamiliesAndItsSource) {
  const auto parsed = parse_entries(Json::array({published_entry(), good_entry()}));
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  const TuningEntry& entry = parsed->collectives.front();
  EXPECT_EQ(entry.provenance, Provenance::kPublished);
  EXPECT_EQ(entry.algorithm, "all_reduce/multicast");
  EXPECT_EQ(entry.source, "a paper");
  EXPECT_EQ(entry.time_us, 0);
  EXPECT_EQ(*parse_tuning_json(write_tuning_json(*parsed), "x.json"), *parsed);
}

TEST(TuningJson, WhatIsPublishedHasNothingOfAMeasurement) {
  const Broken cases[] = {
      {"time_us", 6.1},
      {"runner_up_us", 3},
      {"samples", 50},
      {"driver", "580"},
      {"blocks", 64},
      {"threads", 512},
      {"source", ""},
      {"source", 3},
      {"algorithm", "all_reduce/one_shot_push"},
      {"chunk_bytes", 4096},
      {"runner_up", "all_reduce/other"},
      {"provenance", "guessed"},
  };
  for (const Broken& broken : cases) {
    Json entry = published_entry();
    entry[broken.field] = broken.value;
    EXPECT_THAT(parse_entries(Json::array({entry})).status().message(),
                StartsWith(std::string("mine.json: entry 0: field '") + broken.field + "'"))
        << broken.value;
  }
  Json measured = good_entry();
  measured["source"] = "a paper";
  EXPECT_THAT(parse_entries(Json::array({measured})).status().message(),
              HasSubstr("'source' is for what is published"));
}

TEST(TuningJson, AHostEntryNamesNoGpu) {
  Json entry = good_entry();
  entry["backend"] = "host";
  EXPECT_THAT(parse_entries(Json::array({entry})).status().message(),
              HasSubstr("'gpu' must be absent"));
  entry.erase("gpu");
  entry.erase("driver");
  EXPECT_TRUE(parse_entries(Json::array({entry})).is_ok());
  entry["cores"] = 0;
  EXPECT_THAT(parse_entries(Json::array({entry})).status().message(), HasSubstr("'cores' must be"));
}

TEST(TuningJson, AnEntryOfAGpuNamesNoCores) {
  Json entry = good_entry();
  entry["cores"] = 2;
  EXPECT_THAT(parse_entries(Json::array({entry})).status().message(),
              HasSubstr("'cores' must be absent"));
}

}  // namespace
}  // namespace tutti
