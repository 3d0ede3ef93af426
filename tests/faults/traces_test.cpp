// Whatever a fault test looks for is found where it is left.
#include "faults/traces.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/fd.hpp"
#include "support/children.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

TEST(TracesTest, NothingIsLeft) { EXPECT_EQ(Traces().left(), ""); }

TEST(TracesTest, AFileIsFound) {
  const Traces traces;
  std::ofstream(traces.directory() + "/r0") << "x";
  EXPECT_THAT(traces.left(), HasSubstr("file " + traces.directory() + "/r0"));
}

TEST(TracesTest, SharedMemoryIsFound) {
  const Traces traces;
  const std::string path = "/dev/shm/tutti-traces-test";
  std::ofstream(path) << "x";
  const std::string left = traces.left();
  ::unlink(path.c_str());
  EXPECT_THAT(left, HasSubstr("shared memory " + path));
}

TEST(TracesTest, ASocketIsFoundThoughItsFileIsGone) {
  const Traces traces;
  const std::string path = traces.directory() + "/socket";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::unlink(path.c_str());
  EXPECT_THAT(traces.left(), HasSubstr("sockets"));
}

TEST(TracesTest, AProcessIsFound) {
  const Traces traces;
  Children children(1, [](int, Wire&) { ::pause(); });
  EXPECT_THAT(traces.left(), HasSubstr("processes " + std::to_string(children.all()[0].pid)));
}

}  // namespace
}  // namespace tutti::test
