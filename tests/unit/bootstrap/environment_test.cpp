// What launchers' variables mean, with variables as the launchers set them.
#include "bootstrap/environment.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "base/try.hpp"
#include "unit/bootstrap/ranks.hpp"
#include "unit/bootstrap/strangers.hpp"

namespace tutti {
namespace {

using namespace testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Variables = std::vector<std::string>;

TEST(LaunchEnvironment, ReadsTorchrun) {
  const auto launch = read_launch_environment(
      {"RANK=9", "WORLD_SIZE=16", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=8", "MASTER_ADDR=node0",
       "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=job7", "TORCHELASTIC_RESTART_COUNT=2"});
  ASSERT_TRUE(launch.is_ok()) << launch.status().to_string();
  EXPECT_EQ(launch->launcher, "torchrun");
  EXPECT_EQ(launch->rank, 9);
  EXPECT_EQ(launch->size, 16);
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_EQ(launch->local_size, 8);
  EXPECT_EQ(launch->job, "job7.2.29500");
  EXPECT_FALSE(launch->single_host());
}

TEST(LaunchEnvironment, ReadsOpenMpi) {
  const auto launch =
      read_launch_environment({"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4",
                               "OMPI_COMM_WORLD_LOCAL_RANK=3", "OMPI_COMM_WORLD_LOCAL_SIZE=4",
                               "OMPI_MCA_ess_base_jobid=123", "SLURM_PROCID=0", "SLURM_NTASKS=1"});
  ASSERT_TRUE(launch.is_ok()) << launch.status().to_string();
  EXPECT_EQ(launch->launcher, "openmpi") << "mpirun inside a SLURM allocation";
  EXPECT_EQ(launch->rank, 3);
  EXPECT_TRUE(launch->single_host());
  EXPECT_EQ(launch->job, "123");
}

TEST(LaunchEnvironment, ReadsSlurmOnOneNode) {
  const auto launch =
      read_launch_environment({"SLURM_PROCID=2", "SLURM_NTASKS=4", "SLURM_LOCALID=2",
                               "SLURM_NNODES=1", "SLURM_JOB_ID=55", "SLURM_STEP_ID=3"});
  ASSERT_TRUE(launch.is_ok()) << launch.status().to_string();
  EXPECT_EQ(launch->launcher, "slurm");
  EXPECT_EQ(launch->size, 4);
  EXPECT_EQ(launch->local_size, 4);
  EXPECT_EQ(launch->local_rank, 2);
  EXPECT_EQ(launch->job, "55.3");
}

// A step may be smaller than its job.
TEST(LaunchEnvironment, ReadsSlurmStepsOnSeveralNodes) {
  const Variables common{"SLURM_PROCID=17",
                         "SLURM_NTASKS=64",
                         "SLURM_STEP_NUM_TASKS=20",
                         "SLURM_LOCALID=1",
                         "SLURM_NNODES=8",
                         "SLURM_STEP_NUM_NODES=3",
                         "SLURM_STEP_TASKS_PER_NODE=8(x2),4"};
  for (const auto& [node, tasks] : {std::pair{"0", 8}, {"1", 8}, {"2", 4}}) {
    Variables variables = common;
    variables.push_back(std::string("SLURM_NODEID=") + node);
    const auto launch = read_launch_environment(variables);
    ASSERT_TRUE(launch.is_ok()) << launch.status().to_string();
    EXPECT_EQ(launch->size, 20);
    EXPECT_EQ(launch->local_size, tasks);
    EXPECT_FALSE(launch->single_host());
  }
}

TEST(LaunchEnvironment, RefusesMalformedSlurmLists) {
  for (const std::string list :
       {"x", "8(x", "8(x0)", "8(y2)", "8(x2", "0", "8,,8", "8(x2)4", "8"}) {
    const auto launch =
        read_launch_environment({"SLURM_PROCID=1", "SLURM_NTASKS=20", "SLURM_NNODES=3",
                                 "SLURM_NODEID=2", "SLURM_TASKS_PER_NODE=" + list});
    EXPECT_EQ(launch.status().code(), StatusCode::kInvalidArgument) << list;
    EXPECT_NE(launch.status().message().find("SLURM_TASKS_PER_NODE"), std::string::npos);
  }
}

TEST(LaunchEnvironment, ReadsPmi) {
  const auto launch = read_launch_environment(
      {"PMI_RANK=1", "PMI_SIZE=2", "PMI_JOBID=hydra-1", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2"});
  ASSERT_TRUE(launch.is_ok()) << launch.status().to_string();
  EXPECT_EQ(launch->launcher, "pmi");
  EXPECT_EQ(launch->rank, 1);
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_TRUE(launch->single_host());
  EXPECT_EQ(launch->job, "hydra-1");
}

TEST(LaunchEnvironment, OwnVariablesComeFirst) {
  const auto launch = read_launch_environment(
      {"TUTTI_RANK=1", "TUTTI_SIZE=3", "TUTTI_GROUP_FD=5", "RANK=0", "WORLD_SIZE=1"});
  ASSERT_TRUE(launch.is_ok()) << launch.status().to_string();
  EXPECT_EQ(launch->launcher, "tutti");
  EXPECT_EQ(launch->rank, 1);
  EXPECT_EQ(launch->size, 3);
  EXPECT_TRUE(launch->single_host());
}

TEST(LaunchEnvironment, LocalRanksCanBeSetByHand) {
  const auto launch = read_launch_environment(
      {"PMI_RANK=5", "PMI_SIZE=8", "TUTTI_LOCAL_RANK=1", "TUTTI_LOCAL_SIZE=4"});
  ASSERT_TRUE(launch.is_ok()) << launch.status().to_string();
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_EQ(launch->local_size, 4);
}

TEST(LaunchEnvironment, MinusOneMeansUnset) {
  const auto launch =
      read_launch_environment({"TUTTI_RANK=-1", "TUTTI_SIZE=-1", "PMI_RANK=0", "PMI_SIZE=1"});
  ASSERT_TRUE(launch.is_ok());
  EXPECT_EQ(launch->launcher, "pmi");
}

TEST(LaunchEnvironment, NamesMalformedVariables) {
  for (const auto& [variables, name] : std::vector<std::pair<Variables, std::string>>{
           {{"RANK=abc", "WORLD_SIZE=2"}, "RANK is \"abc\""},
           {{"RANK=1x", "WORLD_SIZE=2"}, "RANK is \"1x\""},
           {{"RANK=0", "WORLD_SIZE=99999999999"}, "WORLD_SIZE is \"99999999999\""},
           {{"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=-3"}, "LOCAL_RANK is \"-3\""},
           {{"SLURM_PROCID=two", "SLURM_NTASKS=2"}, "SLURM_PROCID is \"two\""},
           {{"PMI_RANK=2", "PMI_SIZE=2"}, "PMI_RANK is 2, but PMI_SIZE is 2"},
           {{"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=4"}, "local rank 0 of 4"},
       }) {
    const auto launch = read_launch_environment(variables);
    EXPECT_EQ(launch.status().code(), StatusCode::kInvalidArgument) << variables[0];
    EXPECT_NE(launch.status().message().find(name), std::string::npos)
        << launch.status().to_string();
  }
}

TEST(LaunchEnvironment, NamesWhatIsMissing) {
  EXPECT_THAT(read_launch_environment({"RANK=1"}).status().message(),
              HasSubstr(": RANK is set, but WORLD_SIZE is not; looked for "));
}

TEST(LaunchEnvironment, SaysWhatItLookedFor) {
  const auto launch = read_launch_environment({"HOME=/", "RANK=", "WORLD_SIZE=2"});
  EXPECT_EQ(launch.status().code(), StatusCode::kUnavailable);
  for (const std::string name :
       {"TUTTI_RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"}) {
    EXPECT_NE(launch.status().message().find(name), std::string::npos) << name;
  }
}

// Joins as the launchers' variables say, rank by rank.
class EnvironmentJoining : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Bootstrap>> join(Variables variables, Deadline deadline) {
    TUTTI_ASSIGN(const LaunchEnvironment launch, read_launch_environment(variables));
    const Knobs knobs = Knobs::parse(variables, "");
    return join_group_from(launch, {variables, knobs}, deadline, options_in(directory_));
  }

  Variables slurm(int rank, int size) const {
    return {"SLURM_PROCID=" + std::to_string(rank), "SLURM_NTASKS=" + std::to_string(size),
            "SLURM_NNODES=1", "SLURM_JOB_ID=77", "SLURM_STEP_ID=0"};
  }

  // A socket that is there and does not listen yet looks like a dead job's.
  void wait_until_rank_zero_listens() const {
    while (directory_.entries().size() < 4) std::this_thread::sleep_for(1ms);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path())) {
      if (entry.path().filename() == "r0") dial(*SocketAddress::unix_path(entry.path().string()));
    }
  }

  // A file of the user's.
  std::string file(const std::string& text, mode_t mode = 0600) const {
    const std::string path = files_.path() + "/secret";
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }

  const TemporaryDirectory directory_, files_;
};

TEST_F(EnvironmentJoining, MeetsOnOneHostAgainAndAgain) {
  run_threads(3, [&](int rank) {
    for (int round = 0; round < 10; ++round) {
      const auto group = join(slurm(rank, 3), soon());
      ASSERT_TRUE(group.is_ok()) << group.status().to_string();
      EXPECT_EQ((*group)->rank(), rank);
      EXPECT_TRUE((*group)->barrier(soon()).is_ok());
    }
  });
  EXPECT_TRUE(directory_.entries().empty()) << "left behind: " << directory_.entries().front();
}

TEST_F(EnvironmentJoining, PmiMeetsTheSameWay) {
  run_threads(2, [&](int rank) {
    const auto group =
        join({"PMI_RANK=" + std::to_string(rank), "PMI_SIZE=2", "PMI_JOBID=a"}, soon());
    EXPECT_TRUE(group.is_ok()) << group.status().to_string();
  });
}

TEST_F(EnvironmentJoining, JobsOfOneUserDoNotMeet) {
  run_threads(4, [&](int thread) {
    Variables variables = slurm(thread % 2, 2);
    variables.push_back("SLURM_STEP_ID=" + std::to_string(1 + thread / 2));
    variables.erase(variables.begin() + 4);
    const auto group = join(variables, soon());
    ASSERT_TRUE(group.is_ok()) << group.status().to_string();
    const auto parts = (*group)->all_gather(view_of(thread / 2), soon());
    ASSERT_TRUE(parts.is_ok());
    for (const Bytes& part : *parts) EXPECT_EQ(from_bytes<int>(part), thread / 2);
  });
}

TEST_F(EnvironmentJoining, ASecondJobOfTheSameNameIsTurnedAway) {
  auto first = std::async(std::launch::async, [&] { return join(slurm(0, 2), soon()); });
  wait_until_rank_zero_listens();
  const auto second = join(slurm(0, 2), soon());
  EXPECT_EQ(second.status().code(), StatusCode::kMismatch) << second.status().to_string();
  EXPECT_THAT(second.status().message(),
              StartsWith("rank 0 joined twice, or two jobs share SLURM_JOB_ID (77), SLURM_STEP_ID "
                         "(0): another rank 0 already waits at "));
  EXPECT_TRUE(join(slurm(1, 2), soon()).is_ok()) << "the first job must go on";
  EXPECT_TRUE(first.get().is_ok());
}

// A job that was killed while it formed leaves its directory, its id and its sockets.
TEST_F(EnvironmentJoining, ACrashedJobBeforeDoesNotMatter) {
  {
    std::vector<ForkedRank> crashed;
    for (const int rank : {0, 1}) {
      crashed.emplace_back([&, rank](const ForkedRank::Say& say) {
        say("started");
        return text_of(join(slurm(rank, 3), soon()));
      });
      EXPECT_EQ(crashed.back().line(), "started");
    }
    // Two directories, the id, and a socket of each.
    while (directory_.entries().size() < 5) std::this_thread::sleep_for(1ms);
    crashed[1].signal(SIGSTOP);  // or it would clean up after the other
  }                              // killed
  EXPECT_FALSE(directory_.entries().empty()) << "the test needs something left over";
  // The new job's rank 0 comes last: the others find what is left over, and must not stay with it.
  auto late = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(100ms);
    return join(slurm(0, 3), soon());
  });
  run_threads(2, [&](int thread) {
    const auto group = join(slurm(thread + 1, 3), soon());
    EXPECT_TRUE(group.is_ok()) << group.status().to_string();
  });
  const auto group = late.get();
  EXPECT_TRUE(group.is_ok()) << group.status().to_string();
  EXPECT_TRUE(directory_.entries().empty()) << "left behind: " << directory_.entries().front();
}

TEST_F(EnvironmentJoining, SurvivorsCleanUpAfterADeathWhileTheGroupForms) {
  EXPECT_TRUE(with_longer_limits([&](std::chrono::milliseconds limit) {
    ForkedRank victim([&](const ForkedRank::Say& say) {
      say("started");
      return text_of(join(slurm(0, 3), soon()));
    });
    EXPECT_EQ(victim.line(), "started");
    auto survivor =
        std::async(std::launch::async, [&] { return join(slurm(1, 3), Deadline(2 * limit)); });
    std::this_thread::sleep_for(limit);  // to meet it
    victim.signal(SIGKILL);
    const StatusCode code = survivor.get().status().code();
    if (code == StatusCode::kTimeout) return false;
    EXPECT_EQ(code, StatusCode::kPeerFailed);
    return true;
  }));
  EXPECT_TRUE(directory_.entries().empty()) << "left behind: " << directory_.entries().front();
}

TEST_F(EnvironmentJoining, NamesAMissingRank) {
  const auto alone = join(slurm(1, 2), Deadline(100ms));
  EXPECT_EQ(alone.status().code(), StatusCode::kTimeout);
  EXPECT_NE(alone.status().message().find("rank 0"), std::string::npos);
  const auto root = join(slurm(0, 2), Deadline(100ms));
  EXPECT_EQ(root.status().code(), StatusCode::kTimeout);
  EXPECT_THAT(root.status().message(), HasSubstr("did not meet rank 1 of 2; start all 2 ranks"));
  EXPECT_TRUE(directory_.entries().empty());
}

Variables torchrun(int rank, int size) {
  return {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(size),
          "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"};
}

// What a user of torchrun has is what the text names.
TEST_F(EnvironmentJoining, SaysWhatRanksMustHaveInCommonByItsLaunchersNames) {
  const std::string advice =
      "; start all 2 ranks, each with its own RANK, and with the same WORLD_SIZE (2) and "
      "MASTER_ADDR:MASTER_PORT (127.0.0.1:29500), on one host, by one user, with one "
      "TUTTI_RUNTIME_DIR";
  for (const int rank : {0, 1}) {
    const Status missed = join(torchrun(rank, 2), Deadline(100ms)).status();
    EXPECT_EQ(missed.code(), StatusCode::kTimeout);
    EXPECT_THAT(missed.message(), EndsWith(advice));
  }
}

TEST_F(EnvironmentJoining, NamesASizeThatDiffers) {
  auto first =
      std::async(std::launch::async, [&] { return join(torchrun(0, 2), soon()).status(); });
  const Status second = join(torchrun(1, 3), soon()).status();
  const Status told = first.get();
  EXPECT_EQ(told.code(), StatusCode::kMismatch);
  EXPECT_THAT(told.message(), StartsWith("rank 1 joins a group of 3, this rank 0 a group of 2: "));
  EXPECT_EQ(second.code(), StatusCode::kMismatch);
  EXPECT_THAT(second.message(), HasSubstr("with the same WORLD_SIZE (3) and MASTER_ADDR:"));
}

TEST_F(EnvironmentJoining, RefusesAJobDirectoryThatOthersCanEnter) {
  {
    ForkedRank root([&](const ForkedRank::Say& say) {
      say("started");
      return text_of(join(slurm(0, 2), soon()));
    });
    EXPECT_EQ(root.line(), "started");
    while (directory_.entries().size() < 4) std::this_thread::sleep_for(1ms);
  }
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
    ::chmod(entry.path().c_str(), 0777);
  }
  EXPECT_EQ(join(slurm(0, 2), soon()).status().code(), StatusCode::kPermission);
  EXPECT_EQ(join(slurm(1, 2), soon()).status().code(), StatusCode::kPermission);
}

TEST_F(EnvironmentJoining, TakesTheLaunchersDescriptor) {
  const auto id = GroupId::local();
  const auto descriptor = group_id_descriptor(*id);
  ASSERT_TRUE(descriptor.is_ok());
  std::vector<ForkedRank> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank](const ForkedRank::Say&) {
      return text_of(join({"TUTTI_RANK=" + std::to_string(rank), "TUTTI_SIZE=3",
                           "TUTTI_GROUP_FD=" + std::to_string(descriptor->get())},
                          soon()));
    });
  }
  for (ForkedRank& rank : ranks) EXPECT_EQ(rank.complaint(), "");
  const auto wrong = join({"TUTTI_RANK=0", "TUTTI_SIZE=3", "TUTTI_GROUP_FD=9999"}, soon());
  EXPECT_EQ(wrong.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(wrong.status().message().find("TUTTI_GROUP_FD"), std::string::npos);
}

TEST_F(EnvironmentJoining, OneRankNeedsNothing) {
  EXPECT_TRUE(join({"RANK=0", "WORLD_SIZE=1", "TUTTI_SECRET=short"}, soon()).is_ok());
}

// Ranks of "two hosts": LOCAL_WORLD_SIZE is smaller than WORLD_SIZE.
Variables across(int rank, int size, const std::string& root) {
  return {"RANK=" + std::to_string(rank),
          "WORLD_SIZE=" + std::to_string(size),
          "LOCAL_RANK=0",
          "LOCAL_WORLD_SIZE=1",
          "MASTER_ADDR=127.0.0.1",
          "MASTER_PORT=29500",
          "TORCHELASTIC_RUN_ID=" + root,
          "TUTTI_ROOT=" + root};
}

std::string free_root() { return GroupId::tcp("127.0.0.1", 0)->address(); }

TEST_F(EnvironmentJoining, SeveralHostsNeedASecret) {
  const auto group = join(across(0, 2, "127.0.0.1:4000"), soon());
  EXPECT_EQ(group.status().code(), StatusCode::kPermission);
  EXPECT_NE(group.status().message().find("TUTTI_SECRET_FILE"), std::string::npos);
}

TEST_F(EnvironmentJoining, SeveralHostsMeetWithASecret) {
  const std::string root = free_root();
  const std::string secret = file("0123456789abcdef0123456789abcdef\n");
  run_threads(3, [&](int rank) {
    Variables variables = across(rank, 3, root);
    // The same secret, given in two ways; a line's end does not count.
    variables.push_back(rank == 1 ? "TUTTI_SECRET=0123456789abcdef0123456789abcdef"
                                  : "TUTTI_SECRET_FILE=" + secret);
    const auto group = join(variables, soon());
    EXPECT_TRUE(group.is_ok()) << group.status().to_string();
  });
}

TEST_F(EnvironmentJoining, WithoutARootAPortOfTheirOwnIsUsed) {
  run_threads(2, [&](int rank) {
    Variables variables = across(rank, 2, "job-" + std::to_string(::getpid()));
    variables.pop_back();
    variables.push_back("TUTTI_SECRET=0123456789abcdef");
    const auto group = join(variables, soon());
    EXPECT_TRUE(group.is_ok()) << group.status().to_string();
  });
}

TEST_F(EnvironmentJoining, RefusesSecretsThatAreNone) {
  const auto refused = [&](const std::string& variable, StatusCode code) {
    Variables variables = across(0, 2, "127.0.0.1:4000");
    variables.push_back(variable);
    const auto group = join(variables, soon());
    EXPECT_EQ(group.status().code(), code) << variable << ": " << group.status().to_string();
    EXPECT_EQ(group.status().message().find("guessable"), std::string::npos) << "told the secret";
  };
  refused("TUTTI_SECRET=guessable", StatusCode::kInvalidArgument);
  refused("TUTTI_SECRET_FILE=/does/not/exist", StatusCode::kInvalidArgument);
  refused("TUTTI_SECRET_FILE=" + file("guessable\n"), StatusCode::kInvalidArgument);
  refused("TUTTI_SECRET_FILE=" + file(std::string(64, 's'), 0644), StatusCode::kPermission);
}

TEST_F(EnvironmentJoining, OneHostWithDifferentSecretsDoesNotMeet) {
  const auto join_with = [&](int rank, const char* secret, Deadline deadline) {
    Variables variables = slurm(rank, 2);
    variables.push_back(std::string("TUTTI_SECRET=") + secret);
    return join(variables, deadline);
  };
  EXPECT_TRUE(with_longer_limits([&](std::chrono::milliseconds limit) {
    auto root = std::async(std::launch::async,
                           [&] { return join_with(0, "0123456789abcdef", Deadline(2 * limit)); });
    const auto other = join_with(1, "fedcba9876543210", Deadline(limit));
    EXPECT_EQ(root.get().status().code(), StatusCode::kTimeout);
    if (other.status().code() == StatusCode::kTimeout) return false;  // it never got through
    EXPECT_EQ(other.status().code(), StatusCode::kPermission) << other.status().to_string();
    return true;
  }));
}

}  // namespace
}  // namespace tutti
