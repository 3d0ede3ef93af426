// What a thousand communicators take that have not operated yet.
#include <sys/resource.h>

#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <memory>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "support/check.hpp"
#include "support/fake_gpus.hpp"
#include "support/group.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"

namespace tutti::test {
namespace {

constexpr int kManyGroups = 1000, kPairOfMany = 2;

// Of this process, with the pages of shared memory that were taken, though nobody has written them.
struct Footprint {
  std::uint64_t bytes = 0;
  int descriptors = 0, threads = 0;
};

int entries_of(const char* folder) {
  int entries = -2;  // . and ..
  DIR* const open = ::opendir(folder);
  while (::readdir(open) != nullptr) ++entries;
  ::closedir(open);
  return entries;
}

std::uint64_t shared_bytes() {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  std::uint64_t bytes = 0, begin = 0, end = 0;
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    if (std::strstr(line, "memfd:") == nullptr) continue;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64, &begin, &end) == 2) bytes += end - begin;
  }
  std::fclose(maps);
  return bytes;
}

std::uint64_t private_bytes() {
  std::FILE* const status = std::fopen("/proc/self/status", "r");
  std::uint64_t kib = 0;
  char line[256];
  while (std::fgets(line, sizeof line, status) != nullptr) {
    if (std::sscanf(line, "RssAnon: %" SCNu64, &kib) == 1) break;
  }
  std::fclose(status);
  return kib * KiB;
}

Footprint footprint() {
  return {shared_bytes() + private_bytes(), entries_of("/proc/self/fd"),
          entries_of("/proc/self/task")};
}

// Of descriptors of a process.
struct UsualLimit {
  UsualLimit() {
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit usual = before;
    usual.rlim_cur = 1024;
    ::setrlimit(RLIMIT_NOFILE, &usual);
  }
  ~UsualLimit() { ::setrlimit(RLIMIT_NOFILE, &before); }
  UsualLimit(const UsualLimit&) = delete;
  UsualLimit& operator=(const UsualLimit&) = delete;
  rlimit before{};
};

TEST(ManyGroups, FitIntoAGigabyteUntilTheyOperate) {
  const UsualLimit limit;
  auto world = take(Communicator::create_in_process(kPairOfMany, kOnHost));
  const Footprint before = footprint();
  std::vector<std::vector<std::unique_ptr<Communicator>>> parts(kPairOfMany);
  on_all_ranks(kPairOfMany, [&](int r) {
    const auto k = static_cast<std::size_t>(r);
    for (int i = 0; i < kManyGroups; ++i) parts[k].push_back(take(world[k].split(0, r)));
  });
  const Footprint after = footprint();
  const std::uint64_t each = (after.bytes - before.bytes) / kManyGroups / kPairOfMany;
  std::printf("per rank of a group: %.1f KiB, %d descriptors and %d threads in all\n",
              static_cast<double>(each) / KiB, after.descriptors - before.descriptors,
              after.threads - before.threads);
  EXPECT_LE(after.bytes - before.bytes, 1 * GiB);
  EXPECT_LT(after.descriptors, 1024) << "the usual limit of a process";
  EXPECT_EQ(after.threads, before.threads);

  on_all_ranks(kPairOfMany, [&](int r) {
    for (const int i : {0, kManyGroups - 1}) {
      std::int32_t value = 1;
      require_ok(
          all_reduce(*parts[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)],
                     {.input = &value, .output = &value, .count = 1, .dtype = DataType::kInt32}));
      EXPECT_EQ(value, kPairOfMany);
    }
  });
}

// A stream takes half a MiB of a GPU.
TEST(ManyGroups, ShareAStreamOfEachGpu) {
  FakeGpus gpus(kPairOfMany);
  const std::size_t streams = gpus.cuda.open().streams;
  EXPECT_EQ(streams, std::size_t{kPairOfMany});
  std::vector<std::vector<std::unique_ptr<Communicator>>> parts(kPairOfMany);
  on_all_ranks(kPairOfMany, [&](int r) {
    const auto k = static_cast<std::size_t>(r);
    for (int i = 0; i < 3; ++i) parts[k].push_back(take(gpus.groups[k].split(0, r)));
    for (const auto& part : parts[k]) require_ok(part->prepare());
  });
  EXPECT_EQ(gpus.cuda.open().streams, streams);
}

}  // namespace
}  // namespace tutti::test
