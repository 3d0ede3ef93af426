// Ranks that are threads of one process read and write each other's plain buffers.
#include <sys/mman.h>

#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <thread>
#include <vector>

#include "support/check.hpp"
#include "support/group.hpp"
#include "support/ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

// Memory that nobody may touch once it is given back.
class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : bytes_(bytes),
        at_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {}
  ~Pages() { ::munmap(at_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  float* floats() const { return static_cast<float*>(at_); }
  // The next accesses take long: the kernel makes each page anew.
  void empty() const { ::madvise(at_, bytes_, MADV_DONTNEED); }
  void give_back() const { ::mprotect(at_, bytes_, PROT_NONE); }

 private:
  std::size_t bytes_;
  void* at_;
};

Status reduce(Communicator& group, const Pages& input, const Pages& output, std::size_t count) {
  return all_reduce(group, {.input = input.floats(),
                            .output = output.floats(),
                            .count = count,
                            .dtype = DataType::kFloat32,
                            .options = {.algorithm = "one_shot"}});
}

// Rank 0 aborts while rank 1, which is slower, may be reading its input. Once the call has returned
// that is the caller's.
TEST(PlainBuffersTest, AreNotTouchedOnceACallHasFailed) {
  constexpr std::size_t kCount = 1 << 20;
  constexpr int kRanks = 2, kMoments = 60;
  for (int moment = 0; moment < kMoments; ++moment) {
    auto groups = take(Communicator::create_in_process(kRanks, kOnHost));
    prepare_all(groups);
    std::latch running(kRanks + 1);
    std::jthread aborts([&] {
      running.arrive_and_wait();
      std::this_thread::sleep_for(std::chrono::microseconds(40 * moment));
      groups[0].abort("the test says so");
    });
    on_all_ranks(kRanks, [&](int rank) {
      const Pages input(kCount * sizeof(float)), output(kCount * sizeof(float));
      const auto at = static_cast<std::size_t>(rank);
      running.arrive_and_wait();
      do {
        if (rank == 1) output.empty();
      } while (reduce(groups[at], input, output, kCount).is_ok());
      input.give_back();
      output.give_back();
      while (groups[1 - at].status().is_ok()) std::this_thread::yield();
    });
  }
}

}  // namespace
}  // namespace tutti::test
