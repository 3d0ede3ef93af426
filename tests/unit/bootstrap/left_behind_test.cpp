// What is taken down in the folder where ranks meet, and what is not; and which folder that may be.
#include "bootstrap/left_behind.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bootstrap/private_directory.hpp"
#include "unit/bootstrap/ranks.hpp"

namespace tutti::testing {
namespace {

namespace fs = std::filesystem;

class LeftBehind : public ::testing::Test {
 protected:
  std::string make(const std::string& name) const {
    const std::string path = directory_.path() + "/" + name;
    EXPECT_EQ(::mkdir(path.c_str(), 0700), 0);
    return path;
  }
  static Fd listen_at(const std::string& path) {
    return std::move(real_sockets().listen(*SocketAddress::unix_path(path))).value();
  }
  // Closed, not unlinked: as a killed process leaves it.
  static void leave_socket(const std::string& path) { listen_at(path).reset(); }
  static void make_old(const std::string& path) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  // A job whose file says where `group` meets.
  std::string make_job(const std::string& name, const GroupId& group) const {
    const std::string path = make("tutti-job-" + name);
    EXPECT_TRUE(write_private_file(path + "/id", group.to_text()).is_ok());
    return path;
  }
  void sweep(std::string_view own = "") const {
    remove_left_behind(real_sockets(), directory_.path(), own);
  }

  const TemporaryDirectory directory_;
};

TEST_F(LeftBehind, GroupsAndJobsOfDeadProcessesAreTakenDown) {
  const GroupId group = *GroupId::local();
  const std::string place = make(group.address());
  for (const char* name : {"/r0", "/r1", "/r17"}) leave_socket(place + name);
  make_old(place);
  make_job("0123456789abcdef", group);
  make_job("00000000000000ff", *GroupId::local());  // whose group is gone altogether
  sweep();
  EXPECT_TRUE(directory_.entries().empty()) << directory_.entries().front();
}

TEST_F(LeftBehind, WhoStillListensIsLeftAloneAndNotCalled) {
  const GroupId group = *GroupId::local();
  const std::string place = make(group.address());
  leave_socket(place + "/r0");
  const Fd alive = listen_at(place + "/r1");
  make_old(place);
  make_job("0123456789abcdef", group);
  sweep();
  EXPECT_EQ(directory_.entries().size(), 5u);
  EXPECT_FALSE(real_sockets().accept(alive.get())->valid()) << "a stranger's call";
}

TEST_F(LeftBehind, WhatIsNotKnownIsLeftAlone) {
  const std::string own = make("tutti-0000000000000001"), other = make("tutti-0000000000000002"),
                    shared = make("tutti-0000000000000003"), stranger = make("somebody");
  for (const std::string& each : {own, other, shared, stranger}) leave_socket(each + "/r0");
  std::ofstream(other + "/notes") << "somebody's";
  ASSERT_EQ(::chmod(shared.c_str(), 0755), 0);
  for (const std::string& each : {own, other, shared, stranger}) make_old(each);
  sweep("tutti-0000000000000001");
  EXPECT_EQ(directory_.entries().size(), 9u);
}

// A socket that a rank has made, but does not listen at yet, is like one that is left behind.
TEST_F(LeftBehind, AGroupThatStartsIsLeftAlone) {
  const std::string place = make("tutti-0000000000000001");
  leave_socket(place + "/r0");
  sweep();
  EXPECT_EQ(directory_.entries().size(), 2u);
  make_old(place);
  sweep();
  EXPECT_TRUE(directory_.entries().empty()) << directory_.entries().front();
}

TEST_F(LeftBehind, WhatIsEmptyIsTakenDownOnceItIsOld) {
  const std::string group = make("tutti-0000000000000001"),
                    job = make("tutti-job-0000000000000002");
  std::ofstream(job + "/id.4242") << "half";
  sweep();
  EXPECT_EQ(directory_.entries().size(), 3u);
  make_old(group);
  make_old(job);
  sweep();
  EXPECT_TRUE(directory_.entries().empty()) << directory_.entries().front();
}

TEST(RuntimeDirectory, MustBeThisUsersAlone) {
  const TemporaryDirectory directory;
  EXPECT_EQ(*runtime_directory(directory.path() + "/"), directory.path());
  for (const mode_t mode : {0755U, 0770U, 0500U, 01700U}) {
    ASSERT_EQ(::chmod(directory.path().c_str(), mode), 0);
    const Status refused = runtime_directory(directory.path()).status();
    EXPECT_EQ(refused.code(), StatusCode::kPermission);
    EXPECT_NE(refused.message().find(std::to_string(::geteuid()) + " with mode 700; chmod 700"),
              std::string::npos)
        << refused.message();
  }
  ASSERT_EQ(::chmod(directory.path().c_str(), 0700), 0);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  ASSERT_EQ(::chown(directory.path().c_str(), 12345, 0), 0);
  const Status refused = runtime_directory(directory.path()).status();
  EXPECT_EQ(refused.code(), StatusCode::kPermission);
  EXPECT_NE(refused.message().find("belongs to user 12345 with mode 700"), std::string::npos)
      << refused.message();
}

// The session's folder, unlike one that was named, is passed over in silence.
TEST(RuntimeDirectory, IsTheSessionsWhereThatIsPrivate) {
  const TemporaryDirectory directory;
  const char* const before = std::getenv("XDG_RUNTIME_DIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("XDG_RUNTIME_DIR", directory.path().c_str(), 1);
  EXPECT_EQ(*runtime_directory(""), directory.path());
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  EXPECT_EQ(*runtime_directory(""), "/tmp");
  if (before == nullptr) ::unsetenv("XDG_RUNTIME_DIR");
  if (before != nullptr) ::setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
  ASSERT_EQ(::chmod(directory.path().c_str(), 0700), 0);
}

}  // namespace
}  // namespace tutti::testing
