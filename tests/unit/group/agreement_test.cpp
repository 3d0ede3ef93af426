// What ranks say of each other where their settings, tables or versions differ.
#include "group/agreement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "group/communicator_impl.hpp"
#include "support/bootstrap_shim.hpp"
#include "support/check.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"
#include "tutti/version.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Values = std::vector<AgreedValue>;

Values values_of(const Knobs::Environment& environment, const TuningTable& table = {},
                 const CommunicatorOptions& options = {}) {
  return agreed_values(Knobs::parse(environment, ""), table, options);
}

std::string told(const std::vector<Values>& per_rank, const RankNames& names = {}) {
  return differences(per_rank, names);
}

TuningTable table_in(const std::string& file, int blocks) {
  TuningEntry entry;
  entry.algorithm = "all_reduce/one_shot";
  entry.blocks = blocks;
  return take(TuningTable::from_sources({{PlanSource::kUserFile, file, {entry}}}));
}

TEST(Agreement, NothingIsSaidOfWhatIsAlike) {
  EXPECT_EQ(told({values_of({}), values_of({"TUTTI_STAGING_BYTES=8192K"})}), "");
  // The same table under two names.
  EXPECT_EQ(told({values_of({}, table_in("/a.json", 4)), values_of({}, table_in("/b.json", 4))}),
            "");
}

TEST(Agreement, SettingsThatDifferAreNamedWithTheirValues) {
  EXPECT_EQ(told({values_of({"TUTTI_STAGING_BYTES=1M"}), values_of({"TUTTI_STAGING_BYTES=64K"})}),
            "rank 1 has TUTTI_STAGING_BYTES=65536, rank 0 has 1048576");
  EXPECT_EQ(told({values_of({"TUTTI_TUNE=all_reduce:@nccl"}), values_of({"TUTTI_DISABLE=1"})}),
            "rank 1 has TUTTI_TUNE=nothing, rank 0 has all_reduce:@nccl; "
            "rank 1 has TUTTI_DISABLE=1, rank 0 has 0");
}

TEST(Agreement, RanksWithOneValueAreNamedTogether) {
  const Values usual = values_of({}), odd = values_of({"TUTTI_MULTICAST=1"});
  RankNames names = RankNames().split({8, 9, 10, 11});
  names.found();
  EXPECT_EQ(told({usual, odd, usual, odd}, names),
            "world ranks 9 and 11 (ranks 1 and 3 of the split group) have TUTTI_MULTICAST=1, "
            "world rank 8 (rank 0 of the split group) has 0");
}

TEST(Agreement, TablesAreNamedByFileAndHash) {
  const TuningTable one = table_in("/a.json", 4), other = table_in("/b.json", 8);
  EXPECT_EQ(told({values_of({}, one), values_of({}, other)}),
            fmt::format("rank 1 has TUTTI_TUNING_FILE=/b.json (hash {:016x}), rank 0 has /a.json "
                        "(hash {:016x})",
                        other.hash_of(0), one.hash_of(0)));
  EXPECT_THAT(told({values_of({}, one), values_of({})}),
              StartsWith("rank 1 has TUTTI_TUNING_FILE=none, rank 0 has /a.json (hash "));
}

TEST(Agreement, OptionsAreNamed) {
  EXPECT_EQ(told({values_of({}, {}, {.timeout = std::chrono::milliseconds(5)}),
                  values_of({}, {}, {.backend = Backend::kHost})}),
            "rank 1 has option backend=host, rank 0 has auto; "
            "rank 1 has option timeout=0 ms, rank 0 has 5 ms");
}

TEST(Agreement, TravelsWholeOrNotAtAll) {
  const Values values = values_of({"TUTTI_TUNE=all_reduce:@nccl"}, table_in("/a.json", 4));
  const Bytes bytes = encode(values);
  const Values back = take(decode_agreed_values(bytes));
  ASSERT_EQ(back.size(), values.size());
  EXPECT_EQ(told({values, back}), "");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_agreed_values(ByteView(bytes).first(length)).is_ok()) << length;
  }
}

// ---- between ranks

// What each of three ranks says where rank 1 sends `lie(number of the exchange, truth)`.
std::vector<Status> create_with_liar(const std::function<Bytes(int, Bytes)>& lie) {
  auto bootstraps = make_in_process_group(3);
  std::vector<Status> answers(3);
  on_all_ranks(3, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    auto shim = std::make_unique<BootstrapShim>(std::move(bootstraps[r]), std::vector{0, 0, 0});
    shim->instead_of = [&, exchange = 0](Bytes truth) mutable {
      return rank == 1 ? lie(exchange++, std::move(truth)) : truth;
    };
    answers[r] = CommunicatorImpl::create(
                     std::move(shim), {.backend = Backend::kHost, .timeout = kPatience}, Drivers{})
                     .status();
  });
  return answers;
}

Bytes with_word(Bytes info, std::size_t word, std::uint64_t value) {
  std::memcpy(info.data() + word * sizeof value, &value, sizeof value);
  return info;
}

TEST(Agreement, EveryRankLearnsWhoHasWhichSetting) {
  const auto answers = create_with_liar([](int exchange, Bytes truth) {
    if (exchange == 0) return with_word(std::move(truth), 1, 12345);  // its settings' hash
    Values values = take(decode_agreed_values(truth));
    for (AgreedValue& each : values) {
      if (each.name == "TUTTI_STAGING_BYTES") each.value = "65536";
    }
    return encode(values);
  });
  for (const Status& answer : answers) {
    EXPECT_EQ(answer.code(), StatusCode::kMismatch);
    EXPECT_THAT(answer.message(),
                HasSubstr("rank 1 has TUTTI_STAGING_BYTES=65536, rank 0 has 8388608; give all"));
  }
}

TEST(Agreement, VersionsAreSaidAsTheyAreWritten) {
  EXPECT_EQ(version_text(TUTTI_VERSION), TUTTI_VERSION_STRING);
  EXPECT_EQ(version_text(11203), "1.12.3");
  for (const std::size_t more : {std::size_t{0}, std::size_t{8}}) {  // another layout, too
    const auto answers = create_with_liar([&](int, Bytes truth) {
      truth.resize(truth.size() + more);
      return with_word(std::move(truth), 0, TUTTI_VERSION + 1);
    });
    for (const Status& answer : answers) {
      EXPECT_EQ(answer.code(), StatusCode::kMismatch);
      EXPECT_THAT(answer.message(),
                  HasSubstr(fmt::format("rank 1 runs tutti {}, rank 0 runs tutti {}",
                                        version_text(TUTTI_VERSION + 1), TUTTI_VERSION_STRING)));
    }
  }
}

TEST(Agreement, AnotherBuildOfOneVersionIsNamed) {
  const auto answers = create_with_liar([](int, Bytes truth) {
    truth.push_back(std::byte{0});
    return truth;
  });
  for (const Status& answer : answers) {
    EXPECT_THAT(answer.message(), HasSubstr("rank 1 runs another build of tutti"));
  }
}

}  // namespace
}  // namespace tutti::test
