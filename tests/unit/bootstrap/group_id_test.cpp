#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "bootstrap/bootstrap.hpp"
#include "unit/bootstrap/ranks.hpp"

namespace tutti {
namespace {

TEST(GroupId, GoesThroughTextAndBack) {
  for (const auto& made : {GroupId::local(), GroupId::tcp("10.1.2.3", 4000),
                           GroupId::tcp("::1", 4000), GroupId::tcp("node-1.cluster", 65535)}) {
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    const std::string text = made->to_text();
    EXPECT_LE(text.size(), 127u);
    for (const char c : text) EXPECT_TRUE(c > ' ' && c < 127);
    const auto back = GroupId::from_text(text);
    ASSERT_TRUE(back.is_ok()) << text;
    EXPECT_EQ(back->is_local(), made->is_local());
    EXPECT_EQ(back->address(), made->address());
    EXPECT_EQ(back->secret(), made->secret());
  }
}

TEST(GroupId, IsNeverTheSameTwice) {
  const auto a = GroupId::local(), b = GroupId::local();
  EXPECT_NE(a->address(), b->address());
  EXPECT_NE(a->secret(), b->secret());
}

TEST(GroupId, TakesAPortOfTheSystems) {
  const auto id = GroupId::tcp("127.0.0.1", 0);
  ASSERT_TRUE(id.is_ok());
  EXPECT_EQ(id->address().find("127.0.0.1:"), 0u);
  EXPECT_NE(id->address(), "127.0.0.1:0");
}

TEST(GroupId, RefusesTextThatIsNone) {
  const std::string good = GroupId::local()->to_text();
  const std::string tcp = GroupId::tcp("h", 1)->to_text();
  const std::vector<std::string> wrong{"",
                                       "tutti",
                                       good.substr(0, good.size() - 20),
                                       "x" + good,
                                       good + std::string(200, 'a'),
                                       good.substr(0, 20) + "!" + good.substr(21),
                                       tcp + "x",
                                       good + "/../../etc",
                                       std::string(1 << 20, 'A')};
  for (const std::string& text : wrong) {
    const auto id = GroupId::from_text(text);
    EXPECT_EQ(id.status().code(), StatusCode::kInvalidArgument) << text.substr(0, 200);
    // A text that is nearly right holds a secret: it must not come back in a message.
    if (text.size() > 40) {
      EXPECT_EQ(id.status().message().find(good.substr(15, 25)), std::string::npos);
    }
  }
  EXPECT_FALSE(GroupId::tcp(std::string(100, 'h'), 1).is_ok());
}

TEST(GroupIdDescriptor, IsReadOnlyAndReadable) {
  const auto id = GroupId::local();
  const auto fd = group_id_descriptor(*id);
  ASSERT_TRUE(fd.is_ok()) << fd.status().to_string();
  for (int reader = 0; reader < 3; ++reader) {  // several ranks share the file's offset
    const auto back = group_id_from_descriptor(fd->get());
    ASSERT_TRUE(back.is_ok()) << back.status().to_string();
    EXPECT_EQ(back->to_text(), id->to_text());
  }
  EXPECT_LT(::pwrite(fd->get(), "x", 1, 0), 0) << "the content must be sealed";
  EXPECT_LT(::ftruncate(fd->get(), 0), 0);
}

TEST(GroupIdDescriptor, RefusesOtherDescriptors) {
  EXPECT_EQ(group_id_from_descriptor(-1).status().code(), StatusCode::kInvalidArgument);
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(group_id_from_descriptor(null.get()).status().code(), StatusCode::kInvalidArgument);
  const Fd unsealed = testing::file_with(GroupId::local()->to_text());
  EXPECT_EQ(group_id_from_descriptor(unsealed.get()).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tutti
