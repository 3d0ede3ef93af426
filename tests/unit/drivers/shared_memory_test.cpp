#include "drivers/shared_memory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "fakes/fake_shared_memory.hpp"

namespace tutti {
namespace {

constexpr std::size_t kPage = 4096;

TEST(SharedMemory, IsZeroedAndSharedBetweenMappings) {
  SharedMemoryDriver& driver = real_shared_memory();
  const auto memory = driver.create(3 * kPage);
  ASSERT_TRUE(memory.is_ok()) << memory.status().to_string();
  const auto a = driver.map(memory->get(), 3 * kPage), b = driver.map(memory->get(), 3 * kPage);
  ASSERT_TRUE(a.is_ok() && b.is_ok());
  for (std::size_t i = 0; i < 3 * kPage; ++i) ASSERT_EQ((*a)[i], std::byte{0});
  (*a)[2 * kPage] = std::byte{42};
  EXPECT_EQ((*b)[2 * kPage], std::byte{42});
  driver.unmap(*a, 3 * kPage);
  EXPECT_EQ((*b)[2 * kPage], std::byte{42});
  driver.unmap(*b, 3 * kPage);
}

TEST(SharedMemory, IsNotInheritedAndHasNoName) {
  const auto memory = real_shared_memory().create(kPage);
  ASSERT_TRUE(memory.is_ok());
  EXPECT_NE(::fcntl(memory->get(), F_GETFD) & FD_CLOEXEC, 0);
  struct stat info {};
  ASSERT_EQ(::fstat(memory->get(), &info), 0);
  EXPECT_EQ(info.st_nlink, 0u);
}

TEST(SharedMemory, TakesItsPagesAtOnce) {
  const auto memory = real_shared_memory().create(64 * kPage);
  ASSERT_TRUE(memory.is_ok());
  struct stat info {};
  ASSERT_EQ(::fstat(memory->get(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, static_cast<long>(64 * kPage));
}

// Were it not refused at once, the limit on file sizes would keep the test from taking all memory.
class FileSizeLimit {
 public:
  FileSizeLimit() {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{1 << 30, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_ = SIG_DFL;
};

TEST(SharedMemory, MoreThanThereIsRunsOut) {
  const FileSizeLimit guard;
  for (SharedMemoryDriver* driver : {&real_shared_memory(), &dev_shm_shared_memory()}) {
    const auto huge = driver->create(std::size_t{1} << 46);
    EXPECT_EQ(huge.status().code(), StatusCode::kResourceExhausted) << huge.status().to_string();
    EXPECT_EQ(huge.status().message().find("File too large"), std::string::npos)
        << "must be refused before it is tried";
  }
}

// A file that may not grow stands for a full /dev/shm.
TEST(SharedMemory, AFailedAllocationIsReported) {
  const FileSizeLimit guard;
  const auto memory = real_shared_memory().create((std::size_t{1} << 30) + kPage);
  EXPECT_EQ(memory.status().code(), StatusCode::kResourceExhausted) << memory.status().to_string();
}

TEST(SharedMemory, WithoutMemfdAFileWithoutANameServes) {
  SharedMemoryDriver& driver = dev_shm_shared_memory();
  const auto memory = driver.create(2 * kPage);
  ASSERT_TRUE(memory.is_ok()) << memory.status().to_string();
  struct stat info {};
  ASSERT_EQ(::fstat(memory->get(), &info), 0);
  EXPECT_EQ(info.st_nlink, 0u) << "unlinked";
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const auto address = driver.map(memory->get(), 2 * kPage);
  ASSERT_TRUE(address.is_ok());
  EXPECT_EQ((*address)[kPage], std::byte{0});
  driver.unmap(*address, 2 * kPage);
}

TEST(SharedMemory, RefusesSizesThatCannotBe) {
  EXPECT_EQ(real_shared_memory().create(0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(real_shared_memory().create(~std::size_t{0}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(SharedMemory, MapsNoMoreThanThereIs) {
  SharedMemoryDriver& driver = real_shared_memory();
  const auto memory = driver.create(kPage);
  ASSERT_TRUE(memory.is_ok());
  EXPECT_EQ(driver.map(memory->get(), kPage + 1).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(driver.map(memory->get(), 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(driver.map(-1, kPage).status().code(), StatusCode::kInvalidArgument);
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(driver.map(null.get(), kPage).status().code(), StatusCode::kInvalidArgument);
}

TEST(SharedMemory, UnmapsNothingQuietly) { real_shared_memory().unmap(nullptr, 0); }

TEST(SealedMemory, KeepsItsContent) {
  const std::string text = "what a launcher hands down";
  const auto memory = make_sealed_memory(view_of(text));
  ASSERT_TRUE(memory.is_ok()) << memory.status().to_string();
  EXPECT_LT(::pwrite(memory->get(), "x", 1, 0), 0);
  EXPECT_EQ(errno, EPERM);
  const auto content = read_sealed_memory(memory->get(), text.size());
  ASSERT_TRUE(content.is_ok()) << content.status().to_string();
  EXPECT_EQ(*content, to_bytes(view_of(text)));
  EXPECT_EQ(read_sealed_memory(memory->get(), text.size() - 1).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(FakeSharedMemory, FailsTheCallItIsToldTo) {
  FakeSharedMemory fake(real_shared_memory());
  fake.fail_create_at = 1;
  EXPECT_TRUE(fake.create(kPage).is_ok());
  EXPECT_EQ(fake.create(kPage).status().code(), StatusCode::kResourceExhausted);
  const auto memory = fake.create(kPage);
  ASSERT_TRUE(memory.is_ok());
  fake.fail_map_at = 0;
  EXPECT_EQ(fake.map(memory->get(), kPage).status().code(), StatusCode::kResourceExhausted);
  const auto address = fake.map(memory->get(), kPage);
  ASSERT_TRUE(address.is_ok());
  EXPECT_EQ(fake.mapped, 1);
  fake.unmap(*address, kPage);
  EXPECT_EQ(fake.mapped, 0);
}

}  // namespace
}  // namespace tutti
