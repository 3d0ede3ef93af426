#include "base/write_all.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <thread>

#include "base/fd.hpp"

namespace tutti {
namespace {

TEST(WriteAll, TakesAsManyWritesAsItNeeds) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  const std::string text(5 << 20, 'x');  // more than a pipe holds
  std::thread writer([&] {
    EXPECT_EQ(write_all(writing.get(), text), 0);
    writing.reset();
  });
  std::string got;
  char buffer[4096];
  for (ssize_t bytes = 0; (bytes = ::read(reading.get(), buffer, sizeof buffer)) > 0;) {
    got.append(buffer, static_cast<std::size_t>(bytes));
  }
  writer.join();
  EXPECT_TRUE(got == text);
}

TEST(WriteAll, SaysWhyItFailed) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(write_all(full.get(), "x"), ENOSPC);
  EXPECT_EQ(write_all(-1, "x"), EBADF);
  EXPECT_EQ(write_all(-1, ""), 0);
}

}  // namespace
}  // namespace tutti
