// Candidates whose times and defects are invented.
#include "tune/halving.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tutti::cli {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;

struct FakeTrack : Track {
  std::vector<double> times_us;
  std::set<std::size_t> wrong, wrong_at_the_end;
  double noise = 0;  // part of a time by which samples differ
  double seconds = 1e9;

  std::vector<int> samples;  // taken of each
  int checks = 0;
  std::mt19937 random{1};

  explicit FakeTrack(std::vector<double> times) : times_us(std::move(times)) {
    samples.resize(times_us.size());
  }

  Result<std::vector<bool>> check(std::span<const std::size_t> candidates) override {
    const std::set<std::size_t>& defects = checks++ == 0 ? wrong : wrong_at_the_end;
    std::vector<bool> right;
    for (const std::size_t candidate : candidates) right.push_back(!defects.contains(candidate));
    return right;
  }

  Result<std::vector<std::vector<double>>> sample(std::span<const std::size_t> candidates,
                                                  int count) override {
    std::uniform_real_distribution<double> factor(1, 1 + noise);
    std::vector<std::vector<double>> result;
    for (const std::size_t candidate : candidates) {
      samples[candidate] += count;
      std::vector<double>& taken = result.emplace_back();
      while (std::ssize(taken) < count) taken.push_back(times_us[candidate] * factor(random));
      seconds -= times_us[candidate] * 1e-6 * count;
    }
    return result;
  }

  Result<double> seconds_left() override { return seconds; }
};

// `variations` of each of so many algorithms.
std::vector<Configuration> candidates_of(int algorithms, int variations) {
  std::vector<Configuration> result;
  for (int a = 0; a < algorithms; ++a) {
    for (int v = 0; v < variations; ++v) {
      result.push_back({.algorithm = std::string(1, static_cast<char>('a' + a)), .blocks = v});
    }
  }
  return result;
}

std::optional<HalvingResult> verdict_of(const std::vector<Configuration>& candidates,
                                        Track& track) {
  const auto verdict = halve(candidates, track, {});
  EXPECT_TRUE(verdict.is_ok()) << verdict.status().to_string();
  return verdict.is_ok() ? *verdict : std::nullopt;
}

TEST(Halving, FindsTheFastest) {
  for (std::size_t best = 0; best < 29; ++best) {
    FakeTrack track(std::vector<double>(29, 10.0));
    track.times_us[best] = 9;
    const auto verdict = verdict_of(candidates_of(29, 1), track);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->winner.candidate, best);
    EXPECT_EQ(verdict->winner.time_us, 9);
    EXPECT_EQ(verdict->winner.samples, track.samples[best]);
  }
}

TEST(Halving, FindsTheFastestInNoise) {
  FakeTrack track(std::vector<double>(32, 12.0));
  track.times_us[17] = 10;
  track.noise = 0.5;
  EXPECT_EQ(verdict_of(candidates_of(32, 1), track)->winner.candidate, 17u);
}

TEST(Halving, SpendsItsSamplesOnTheBest) {
  FakeTrack track({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  verdict_of(candidates_of(16, 1), track);
  EXPECT_THAT(track.samples, ElementsAre(78, 78, 78, 78, 12, 12, 12, 12, 4, 4, 4, 4, 4, 4, 4, 4));
}

TEST(Halving, LeavesWhatComesFirstOnlyForSomethingBetter) {
  FakeTrack track({10, 9.9});
  EXPECT_EQ(verdict_of(candidates_of(1, 2), track)->winner.candidate, 0u);
  track.times_us[1] = 9.7;
  track.checks = 0;
  EXPECT_EQ(verdict_of(candidates_of(1, 2), track)->winner.candidate, 1u);
}

TEST(Halving, MeasuresARunnerUpOfAnotherAlgorithm) {
  FakeTrack track({1, 1, 1, 1, 1, 1, 1, 1, 50, 40, 40, 40, 40, 40, 40, 40});
  track.times_us[3] = 0.9;
  const auto verdict = verdict_of(candidates_of(2, 8), track);
  EXPECT_EQ(verdict->winner.candidate, 3u);
  ASSERT_TRUE(verdict->runner_up);
  EXPECT_EQ(verdict->runner_up->candidate, 9u);
  EXPECT_GE(verdict->runner_up->samples, 50);
}

TEST(Halving, KnowsNoRunnerUpWhereThereIsOneAlgorithm) {
  FakeTrack track({3, 2, 1});
  EXPECT_FALSE(verdict_of(candidates_of(1, 3), track)->runner_up);
}

// Negative controls: what is wrong is the fastest, and never wins.

TEST(Halving, DropsWhatIsWrong) {
  FakeTrack track({5, 1, 2, 3, 4, 5, 6, 7, 8});
  track.wrong = {1, 2};
  EXPECT_EQ(verdict_of(candidates_of(9, 1), track)->winner.candidate, 3u);
  EXPECT_EQ(track.samples[1], 0);
}

TEST(Halving, DropsWhatIsWrongInTheEnd) {
  FakeTrack track({5, 1, 2, 3, 4, 5, 6, 7, 8});
  track.wrong_at_the_end = {1};
  const auto verdict = verdict_of(candidates_of(9, 1), track);
  EXPECT_EQ(verdict->winner.candidate, 2u);
  EXPECT_EQ(verdict->runner_up->candidate, 3u);
}

TEST(Halving, HasNoWinnerWhereAllAreWrong) {
  FakeTrack at_once({1, 2});
  at_once.wrong = {0, 1};
  EXPECT_FALSE(verdict_of(candidates_of(2, 1), at_once));
  FakeTrack at_the_end({1, 2});
  at_the_end.wrong_at_the_end = {0, 1};
  EXPECT_FALSE(verdict_of(candidates_of(2, 1), at_the_end));
  FakeTrack nobody({});
  EXPECT_FALSE(verdict_of({}, nobody));
}

TEST(Halving, CutsSamplesButNoCheckWhereTimeIsShort) {
  FakeTrack track(std::vector<double>(16, 1000.0));
  track.seconds = 0.2;  // 52 samples of each finalist would take that alone
  verdict_of(candidates_of(16, 1), track);
  EXPECT_THAT(track.samples, Each(Ge(4)));
  EXPECT_GT(track.seconds, -0.01);
  EXPECT_EQ(track.checks, 2);
}

TEST(Halving, TakesOneSampleEachWhereThereIsNoTime) {
  FakeTrack track({1, 2, 3, 4, 5, 6, 7, 8});
  track.seconds = 0;
  EXPECT_EQ(verdict_of(candidates_of(8, 1), track)->winner.candidate, 0u);
  EXPECT_THAT(track.samples, ElementsAre(3, 3, 3, 3, 1, 1, 1, 1));
  EXPECT_EQ(track.checks, 2);
}

TEST(Halving, EndsWithTheTracksFailure) {
  struct Failing : FakeTrack {
    using FakeTrack::FakeTrack;
    Result<double> seconds_left() override { return Status(StatusCode::kTimeout, "late"); }
  } track({1, 2});
  EXPECT_EQ(halve(candidates_of(2, 1), track, {}).status().code(), StatusCode::kTimeout);
}

}  // namespace
}  // namespace tutti::cli
