#include "drivers/processes.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/shared_memory.hpp"

namespace tutti {
namespace {

TEST(Processes, KnowThemselves) {
  const auto facts = process_facts(::getpid());
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->state, 'R');
  EXPECT_GT(facts->start, 0u);
  EXPECT_GE(facts->threads, 1);
  EXPECT_FALSE(facts->ended());
  EXPECT_FALSE(process_facts(0));
  EXPECT_FALSE(has_ended(::getpid(), facts->start));
  EXPECT_TRUE(has_ended(::getpid(), facts->start + 1)) << "another one of this number";
}

TEST(Processes, HaveEndedBeforeTheyAreReaped) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto facts = process_facts(child);
  ASSERT_TRUE(facts);
  EXPECT_FALSE(has_ended(child, facts->start));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(process_facts(child)->state, 'Z');
  EXPECT_TRUE(has_ended(child, facts->start));
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(has_ended(child, facts->start));
}

// Where the first thread has ended and others go on, the system shows a zombie, too.
TEST(Processes, HaveNotEndedWithTheirFirstThread) {
  const auto line = [](const char* threads) {
    std::string text = "17 (a) Z";
    for (int field = 4; field < 22; ++field)
      text += field == 20 ? std::string(" ") + threads : " 0";
    return text + " 4242 rest";
  };
  EXPECT_FALSE(parse_process_facts(line("2"))->ended());
  EXPECT_TRUE(parse_process_facts(line("1"))->ended());
  EXPECT_EQ(parse_process_facts(line("2"))->start, 4242u);
}

TEST(Processes, AreReadWhateverTheyAreCalled) {
  std::string line = "17 (a) Z (b) c) T 1";
  for (int field = 5; field < 22; ++field) line += " 0";
  const auto facts = parse_process_facts(line + " 4242 rest\n");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->state, 'T');
  EXPECT_EQ(facts->start, 4242u);
  for (const char* bad : {"", ")", "17 (a)", "17 (a) ", "17 (a) S 1 2", "17 a S 1"}) {
    EXPECT_FALSE(parse_process_facts(bad)) << bad;
  }
  EXPECT_FALSE(parse_process_facts(line + " x "));
}

TEST(Processes, DescriptorsAreFoundByName) {
  constexpr char kName[] = "tutti-test-of-descriptors";
  EXPECT_TRUE(descriptors_with(kName).empty());
  auto memory = named_shared_memory(kName)->create(4096);
  ASSERT_TRUE(memory.is_ok());
  const auto found = descriptors_with(kName);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].process, ::getpid());
  EXPECT_TRUE(found[0].path.ends_with("/" + std::to_string(memory->get())));
}

}  // namespace
}  // namespace tutti
