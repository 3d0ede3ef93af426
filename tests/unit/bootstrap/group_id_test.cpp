#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

#include "bootstrap/bootstrap.hpp"
#include "bootstrap/held_ports.hpp"
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

SocketAddress address_in(const GroupId& id) {
  const auto place = parse_host_port(id.address());
  return *SocketAddress::tcp(place->host, place->port);
}

// Whoever asks for this very port, as rank 0 does, gets it; nobody else does.
TEST(GroupId, HoldsItsPortForRankZero) {
  const auto id = GroupId::tcp("127.0.0.1", 0), other = GroupId::tcp("127.0.0.1", 0);
  ASSERT_TRUE(id.is_ok() && other.is_ok());
  EXPECT_NE(id->address(), other->address());
  const SocketAddress here = address_in(*id);
  const Fd stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* const raw = reinterpret_cast<const sockaddr*>(here.data());
  EXPECT_NE(::bind(stranger.get(), raw, static_cast<socklen_t>(here.size())), 0);
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_TRUE(real_sockets().listen(here).is_ok());
}

TEST(GroupId, LetsGoOfPortsThatNobodyUses) {
  const auto oldest = GroupId::tcp("127.0.0.1", 0);
  ASSERT_TRUE(oldest.is_ok());
  std::set<std::string> addresses;
  for (std::size_t k = 0; k < kMaxHeldPorts; ++k) {
    const auto id = GroupId::tcp("127.0.0.1", 0);
    ASSERT_TRUE(id.is_ok());
    addresses.insert(id->address());
  }
  EXPECT_EQ(addresses.size(), kMaxHeldPorts) << "all of them are held at once";
  const SocketAddress here = address_in(*oldest);
  const Fd anyone(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* const raw = reinterpret_cast<const sockaddr*>(here.data());
  EXPECT_EQ(::bind(anyone.get(), raw, static_cast<socklen_t>(here.size())), 0);
}

TEST(GroupId, ChoosesPortsOfThisMachineAlone) {
  const auto id = GroupId::tcp("192.0.2.1", 0);  // an address of nobody (RFC 5737)
  EXPECT_EQ(id.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(id.status().message(),
              ::testing::HasSubstr("192.0.2.1 is no address of this machine: give a port"));
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
