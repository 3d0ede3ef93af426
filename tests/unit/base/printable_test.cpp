#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Printable, LeavesWordsOfAnyLanguage) {
  for (const std::string text : {"", "all_reduce '64K' \\", "größe \u00a0 数据 \U0001f600"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, EscapesWhatSteersATerminal) {
  EXPECT_EQ(printable("a\nb\rc\td"), "a\\nb\\rc\\td");
  EXPECT_EQ(printable("\x1b[31mred\x7f"), "\\x1b[31mred\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("\u009b31m"), "\xc2\\x9b31m");
}

TEST(Printable, KeepsWhatIsAskedFor) { EXPECT_EQ(printable("a\n\tb\x1b", "\n"), "a\n\\tb\\x1b"); }

}  // namespace
}  // namespace tutti
