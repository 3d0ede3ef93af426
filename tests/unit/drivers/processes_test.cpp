#include "drivers/processes.hpp"

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
  EXPECT_FALSE(process_facts(0));
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
