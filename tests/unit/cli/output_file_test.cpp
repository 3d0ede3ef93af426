#include "output_file.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

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

}  // namespace
}  // namespace tutti::cli
