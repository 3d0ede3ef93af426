#include "pipelines/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "pipelines/order.hpp"
#include "programs.hpp"
#include "support/check.hpp"

namespace tutti::pipelines::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using tutti::test::take;

using Lists = std::vector<std::vector<Instruction>>;

// Removes from the program the waiting node with this number; false: there are not so many.
bool remove_wait(Nodes& nodes, int& number) {
  for (auto node = nodes.begin(); node != nodes.end(); ++node) {
    const auto& value = node->value;
    const bool waits = std::holds_alternative<Synchronize>(value) ||
                       std::holds_alternative<SendWait>(value) ||
                       std::holds_alternative<RecvWait>(value);
    if (waits && number-- == 0) {
      nodes.erase(node);
      return true;
    }
    if (auto* loop = std::get_if<For>(&node->value)) {
      if (remove_wait(loop->body, number)) return true;
    } else if (auto* condition = std::get_if<If>(&node->value)) {
      if (remove_wait(condition->then, number)) return true;
      if (remove_wait(condition->otherwise, number)) return true;
    }
  }
  return false;
}

std::string why_refused(const Program& program, const Lists& ranks) {
  const Status status = check(program, ranks);
  EXPECT_TRUE(status.is_ok() || status.code() == StatusCode::kInvalidArgument);
  return status.message();
}

// The tiles' streams wait for the caller's anyway. So the order of their first transfers is advice.
bool orders_tiles_alone(const Description& d, int wait) {
  return d.algorithm == Algorithm::kTiles && d.protocol == Protocol::kGet && !d.symmetric_a &&
         d.inter_stream_order && wait == 1;
}

TEST(PipelineCheck, RefusesAProgramWithoutOneOfItsWaits) {
  for (const Description& description : all_kinds(4, 12)) {
    for (int number = 0;; ++number) {
      Program program = take(derive(description));
      int left = number;
      if (!remove_wait(program.call, left)) break;
      if (orders_tiles_alone(description, number)) continue;
      EXPECT_FALSE(checked(program).is_ok()) << name(description) << ", wait " << number;
    }
  }
}

TEST(PipelineCheck, RefusesARankWithoutOneOfItsWaits) {
  std::vector<Description> all = all_kinds(4, 12);
  // Rank 0 learns from rank 3 that rank 2 has entered the call.
  all.push_back(small(Algorithm::kShift, Protocol::kPut, 7, 7));
  for (Description description : all) {
    for (description.streams = 1; description.streams <= 4; ++description.streams) {
      const Program program = take(derive(description));
      const Lists ranks = take(checked(program));
      for (std::size_t i = 0; i < ranks[0].size(); ++i) {
        if (!waits_for_another(ranks[0][i])) continue;
        if (only_orders(description, ranks[0], i)) continue;
        Lists changed = ranks;
        changed[0].erase(changed[0].begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_THAT(why_refused(program, changed), HasSubstr("rank "))
            << name(description) << ": " << ranks[0][i].node;
      }
    }
  }
}

TEST(PipelineCheck, AcceptsTheLargestPrograms) {
  Description description = small(Algorithm::kTiles, Protocol::kGet, kMostPipelineRanks, 1024);
  description.streams = kMostPipelineStreams;
  description.tiles = kMostPipelineTiles;
  EXPECT_TRUE(checked(take(derive(description))).is_ok());
}

// The instruction of rank 0 that `text` begins.
std::size_t find_node(const Lists& ranks, std::string_view text) {
  std::size_t i = 0;
  while (!ranks[0][i].node.starts_with(text) || !waits_for_another(ranks[0][i])) ++i;
  return i;
}

std::string why_refused_without(const Description& description, std::string_view node) {
  const Program program = take(derive(description));
  Lists ranks = take(checked(program));
  ranks[0].erase(ranks[0].begin() + static_cast<std::ptrdiff_t>(find_node(ranks, node)));
  return why_refused(program, ranks);
}

TEST(PipelineCheck, NamesTheNodesOfARace) {
  Description get = small(Algorithm::kShift, Protocol::kGet, 2, 8);
  get.symmetric_a = true;
  EXPECT_EQ(why_refused_without(get, "SendWait"),
            "race: rank 0, call 1, the caller after the call: writes A[0:4] of rank 0 without "
            "waiting for rank 1, call 1, stream 1: RecvPost(A_gathered[shard 0] <- A of rank 0)");
  EXPECT_THAT(why_refused_without(get, "RecvPost"),
              AllOf(HasSubstr("rank 0, call 1, stream 1: RecvPost(A_gathered[shard 1] <- A of rank "
                              "1)"),
                    HasSubstr("A[0:4] of rank 1")));
  EXPECT_THAT(why_refused_without(small(Algorithm::kShift, Protocol::kPut, 2, 8), "RecvWait"),
              AllOf(HasSubstr("Matmul(A_gathered[shard 1], B0 + bias0, B1)"),
                    HasSubstr("A_gathered[4:8] of rank 0")));
}

TEST(PipelineCheck, NamesTheWaitsOfADeadlock) {
  const Program program = take(derive(small(Algorithm::kShift, Protocol::kGet, 2, 8)));
  Lists ranks = take(checked(program));
  std::erase_if(ranks[1], [](const Instruction& instruction) {
    return instruction.node.starts_with("SendPost");
  });
  EXPECT_THAT(why_refused(program, ranks),
              AllOf(HasSubstr("deadlock: "), HasSubstr("rank 0, call 1, stream 1: RecvPost("),
                    HasSubstr(": waits for ready[0] from rank 1")));
}

// In one stream, each of two puts that wait for the other's grant first.
TEST(PipelineCheck, RefusesTransfersThatWaitForEachOther) {
  Program program = take(derive(small(Algorithm::kShift, Protocol::kPut, 2, 8)));
  auto& posts = std::get<For>(program.call[1].value).body;
  ASSERT_TRUE(std::holds_alternative<RecvPost>(posts.front().value));
  const Node post = posts.front();
  posts.clear();
  for (Node& node : program.call) {
    auto* loop = std::get_if<For>(&node.value);
    const bool empty = loop == nullptr || loop->body.empty();
    if (!empty && loop->variable == Variable::kStep) loop->body.push_back(post);
  }
  EXPECT_THAT(checked(program).status().message(), HasSubstr("deadlock: "));
}

// With independent streams, the caller's may wait for the readers before this rank reads. One queue
// would then wait for the peer's queue, which waits for this one.
TEST(PipelineCheck, RefusesWhatHangsIfStreamsShareAQueue) {
  Program program = take(derive(small(Algorithm::kShift, Protocol::kGet, 2, 8)));
  const Node wait = program.call.back();
  ASSERT_TRUE(std::holds_alternative<SendWait>(std::get<For>(wait.value).body.front().value));
  program.call.pop_back();
  const auto own = std::ranges::find(program.call, Node{SetCurrentStream{constant(0)}});
  program.call.insert(own, wait);
  const Lists ranks = take(lower(program));
  EXPECT_TRUE(execute(ranks, 2, [](const Moment&) { return Status::ok(); }).is_ok());
  EXPECT_EQ(why_refused(program, ranks),
            "deadlock if each rank runs its streams in one queue, as listed: "
            "rank 0, call 1, the caller's stream: SendWait(A_gathered[shard 0] -> rank 1): waits "
            "for done[0] from rank 1; "
            "rank 1, call 1, the caller's stream: SendWait(A_gathered[shard 1] -> rank 0): waits "
            "for done[0] from rank 0");
}

// A ring of gets whose streams do not wait for each other's steps.
TEST(PipelineCheck, RefusesWhatHangsIfStreamsRunOneAfterAnother) {
  Program program = take(derive(small(Algorithm::kRing, Protocol::kGet, 3, 9)));
  const Index step = kStep, right = mod(kRank + 1, 3);
  const Slice read{1, mod(kRank - kStep + 1, 3)};
  program.call.back() = {
      For{Variable::kStep, 1, 2, {Node{SendWait{{right, read, {}, step, step}}}}}};
  for (Node& node : program.call) {
    auto* loop = std::get_if<For>(&node.value);
    if (loop == nullptr) continue;
    for (Node& inner : loop->body) {
      auto* condition = std::get_if<If>(&inner.value);
      if (condition != nullptr) condition->then.pop_back();  // the Synchronize
    }
  }
  const Lists ranks = take(lower(program));
  EXPECT_TRUE(execute(ranks, 2, [](const Moment&) { return Status::ok(); }).is_ok());
  EXPECT_THAT(why_refused(program, ranks),
              AllOf(HasSubstr("deadlock if each rank runs its streams in one queue, the caller's "
                              "stream first: rank 0, call 1, stream 0: RecvPost("),
                    HasSubstr(": waits for ready[2] from rank 2; rank 1, ")));
}

TEST(PipelineCheck, RefusesAWordThatIsWrittenTwice) {
  const Program program = take(derive(small(Algorithm::kShift, Protocol::kPut, 2, 8)));
  Lists ranks = take(checked(program));
  ranks[0].push_back(ranks[0].front());
  EXPECT_THAT(why_refused(program, ranks), HasSubstr("a word that this call has written before"));
}

TEST(PipelineCheck, RefusesMemoryThatIsNotSetUp) {
  Program program = take(derive(small(Algorithm::kShift, Protocol::kPut, 2, 8)));
  ASSERT_EQ(program.setup.size(), 2u);
  const Nodes setup = program.setup;
  program.setup = {setup[0]};
  EXPECT_THAT(checked(program).status().message(), HasSubstr("before ShareHandles"));
  program.setup = {setup[1], setup[0]};
  EXPECT_EQ(checked(program).status().message(),
            "ShareHandles(A_gathered) before the memory is allocated");
  program.setup = {};
  EXPECT_THAT(checked(program).status().message(), HasSubstr("before Allocate"));
  program.setup = {{ShareHandles{{0}}}};
  EXPECT_EQ(checked(program).status().message(), "ShareHandles(A): the memory is not symmetric");
  program.setup = {{Allocate{0}}};
  EXPECT_EQ(checked(program).status().message(), "Allocate(A): the buffer is the caller's");
}

}  // namespace
}  // namespace tutti::pipelines::test
