// A rank that waits on the host for a late one leaves the core to others.
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "support/check.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds cpu_time_of_this_thread() {
  timespec time{};
  require(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0, "clock_gettime");
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

struct Wait {
  std::string name;  // of what rank 0 waits in
  std::function<Status(Communicator&)> run;

  friend void PrintTo(const Wait& wait, std::ostream* out) { *out << wait.name; }  // GoogleTest's
};

Wait in_all_reduce(const char* algorithm) {
  return {algorithm, [algorithm](Communicator& group) {
            std::vector<float> in(1000, 1.0f), out(1000);
            AllReduce call{.input = in.data(), .output = out.data(), .count = in.size()};
            call.options.algorithm = algorithm;
            return all_reduce(group, call);
          }};
}

Status exchange(Communicator& group, std::size_t count) {
  std::vector<float> values(count);
  if (group.rank() == 0) return recv(group, {.buffer = values.data(), .count = count, .peer = 1});
  return send(group, {.buffer = values.data(), .count = count, .peer = 0});
}

const Wait kWaits[] = {
    in_all_reduce("one_shot"),
    in_all_reduce("one_shot_push"),
    in_all_reduce("ring"),
    {"recv", [](Communicator& group) { return exchange(group, 100'000); }},
    {"recv_in_packets", [](Communicator& group) { return exchange(group, 100); }},
    {"wait_signal",
     [](Communicator& group) {
       return group.rank() == 0 ? wait_signal(group, {.peer = 1}) : signal(group, {.peer = 0});
     }},
};

class Waiting : public ::testing::TestWithParam<Wait> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Waiting, ::testing::ValuesIn(kWaits),
                         [](const auto& parameter) { return parameter.param.name; });

// A rank that polled or yielded all the time would take all that is left of a core; where others
// leave none, there is nothing to see.
TEST_P(Waiting, TakesLittleOfACore) {
  constexpr std::chrono::milliseconds kLate{300};
  auto groups = groups_of(2);
  std::chrono::nanoseconds used{0};
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    if (rank == 1) std::this_thread::sleep_for(kLate);
    const auto before = cpu_time_of_this_thread();
    EXPECT_EQ(GetParam().run(group).to_string(), Status::ok().to_string());
    if (rank == 0) used = cpu_time_of_this_thread() - before;
  });
  EXPECT_LT(used, kLate / 10);
}

}  // namespace
}  // namespace tutti::test
