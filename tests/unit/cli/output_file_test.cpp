#include "output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <stdlib.h>
#include <thread>

#include "base/fd.hpp"
#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

TEST(OutputFile, IsWrittenAndReplaced) {
  const ScratchFolder folder;
  const std::string path = folder / "x.json";
  ASSERT_TRUE(write_file_atomically(path, "first"));
  ASSERT_TRUE(write_file_atomically(path, "second"));
  EXPECT_EQ(folder.read("x.json"), "second");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(OutputFile, IsReadableAsAnyFileOfItsUser) {
  const ScratchFolder folder;
  const mode_t before = ::umask(022);
  ASSERT_TRUE(write_file_atomically(folder / "x", "text"));
  ::umask(before);
  struct stat status = {};
  ASSERT_EQ(::stat((folder / "x").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644u);
}

TEST(OutputFile, IsNeverSeenInParts) {
  const ScratchFolder folder;
  const std::string path = folder / "x";
  const std::string texts[] = {std::string(1 << 20, 'a'), std::string(1 << 19, 'b')};
  ASSERT_TRUE(write_file_atomically(path, texts[0]));
  std::atomic<bool> stop{false};
  int seen = 0;
  std::thread reader([&] {
    while (!stop) {
      const std::string text = folder.read("x");
      EXPECT_TRUE(text == texts[0] || text == texts[1]) << text.size();
      ++seen;
    }
  });
  for (int k = 1; k < 40; ++k) ASSERT_TRUE(write_file_atomically(path, texts[k % 2]));
  stop = true;
  reader.join();
  EXPECT_GT(seen, 0);
}

TEST(OutputFile, ThatCannotBeWrittenLeavesNothingBehind) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "taken");  // rename fails: a folder is in the way
  EXPECT_EQ(write_file_atomically(folder / "taken", "text").code(), StatusCode::kSystem);
  EXPECT_EQ(folder.files(), 1u);
  EXPECT_EQ(write_file_atomically(folder / "no/such/x", "text").code(),
            StatusCode::kInvalidArgument);
}

TEST(OutputFile, CheckChangesNothing) {
  const ScratchFolder folder;
  folder.write("x", "old");
  EXPECT_TRUE(check_writable(folder / "x"));
  EXPECT_TRUE(check_writable(folder / "new"));
  EXPECT_EQ(folder.read("x"), "old");
  EXPECT_EQ(folder.files(), 1u);
  EXPECT_FALSE(check_writable(""));
  EXPECT_FALSE(check_writable(folder.path()));
  EXPECT_FALSE(check_writable(folder / "no/such/x"));
}

TEST(OutputFile, ThatIsNotThereCannotBeRead) {
  const auto text = read_file("/no/such/file");
  EXPECT_EQ(text.status().message(), "cannot read '/no/such/file': No such file or directory");
}

TEST(OutputFile, KeepsItsMode) {
  const ScratchFolder folder;
  folder.write("x", "old");
  ASSERT_EQ(::chmod((folder / "x").c_str(), 0640), 0);
  ASSERT_TRUE(write_file_atomically(folder / "x", "new"));
  struct stat status = {};
  ASSERT_EQ(::stat((folder / "x").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
  EXPECT_EQ(folder.read("x"), "new");
}

TEST(OutputFile, KeepsItsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const ScratchFolder folder;
  folder.write("x", "old");
  ASSERT_EQ(::chown((folder / "x").c_str(), 1234, 2345), 0);
  ASSERT_TRUE(write_file_atomically(folder / "x", "new"));
  struct stat status = {};
  ASSERT_EQ(::stat((folder / "x").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 1234u);
  EXPECT_EQ(status.st_gid, 2345u);
}

TEST(OutputFile, FollowsLinksAlsoToWhatIsNotThereYet) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "there");
  std::filesystem::create_symlink("there/file", folder / "link");
  std::filesystem::create_symlink("link", folder / "second");
  for (const char* text : {"first", "second"}) {
    ASSERT_TRUE(check_writable(folder / "second"));
    ASSERT_TRUE(write_file_atomically(folder / "second", text));
    EXPECT_EQ(folder.read("there/file"), text);
  }
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "second"));
  std::filesystem::create_symlink("round", folder / "round");
  EXPECT_EQ(write_file_atomically(folder / "round", "x").code(), StatusCode::kInvalidArgument);
}

// A terminal, whose folder lets nobody replace it: /dev/null would be lost where this fails.
TEST(OutputFile, DevicesAreWrittenTo) {
  const Fd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  char name[64] = {};
  if (!terminal.valid() || ::grantpt(terminal.get()) != 0 || ::unlockpt(terminal.get()) != 0 ||
      ::ptsname_r(terminal.get(), name, sizeof name) != 0) {
    GTEST_SKIP() << "no pseudo-terminals here";
  }
  const Fd held(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));  // or what is written is dropped
  EXPECT_TRUE(check_writable(name));
  EXPECT_TRUE(write_file_atomically(name, "text"));
  char read[8] = {};
  EXPECT_EQ(::read(terminal.get(), read, sizeof read), 4);
  EXPECT_STREQ(read, "text");
}

TEST(OutputFile, FifosAreWrittenToAndStay) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(check_writable(folder / "fifo"));
  std::string read;
  std::thread reader([&] { read = folder.read("fifo"); });
  EXPECT_TRUE(write_file_atomically(folder / "fifo", "text"));
  reader.join();
  EXPECT_EQ(read, "text");
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "fifo"));
}

TEST(OutputFile, WhatHasNoEndIsNotRead) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(read_file(folder / "fifo").status().message(), testing::HasSubstr("neither a file"));
  EXPECT_THAT(read_file(folder.path()).status().message(), testing::HasSubstr("Is a directory"));
  EXPECT_THAT(read_file("/dev/zero").status().message(), testing::HasSubstr("longer than"));
  EXPECT_EQ(*read_file("/dev/null"), "");
}

}  // namespace
}  // namespace tutti::cli
