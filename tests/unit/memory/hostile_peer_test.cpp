// One rank offers memory that is not what it claims. Every rank returns a failure that names it,
// nothing stays open, and the heaps work on.
#include <fcntl.h>
#include <sys/mman.h>

#include "memory/heap_messages.hpp"
#include "unit/memory/heap_group.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

constexpr int kLiar = 1;
constexpr std::size_t kSize = 100000;

class HostilePeerTest : public ::testing::TestWithParam<HeapKind> {
 protected:
  // `lie` makes rank 1 lie; the truth is told again afterwards.
  void expect_refused(const std::function<void(BootstrapShim&)>& lie) {
    HeapGroup group(GetParam(), {0, 1, 2});
    expect_symmetric(group.allocate(4096));  // and what is made at the first use is made
    const auto before = group.open();
    const int descriptors = open_descriptors();
    BootstrapShim& liar = group.bootstrap(kLiar);
    lie(liar);
    for (const auto& result : group.try_allocate(kSize)) {
      EXPECT_FALSE(result.is_ok());
      EXPECT_THAT(result.status().message(), HasSubstr("rank 1"));
    }
    liar.instead_of = nullptr;
    liar.instead_of_descriptors = nullptr;
    EXPECT_EQ(group.open(), before);
    EXPECT_EQ(open_descriptors(), descriptors);
    expect_symmetric(group.allocate(kSize));
  }

  void expect_descriptor_refused(int descriptor) {
    ASSERT_GE(descriptor, 0);
    const Fd owned(descriptor);
    expect_refused([&](BootstrapShim& liar) {
      liar.instead_of_descriptors = [&](std::vector<int>& sent) {
        for (int& one : sent) one = owned.get();
      };
    });
  }

  void expect_offer_refused(const std::function<void(Offer&)>& change) {
    expect_refused([&](BootstrapShim& liar) {
      liar.instead_of = [change](Bytes truth) {
        auto message = decode_message(truth);
        if (!message.is_ok() || message->offers.empty()) return truth;
        change(message->offers[0]);
        return encode(*message);
      };
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, HostilePeerTest,
                         ::testing::Values(HeapKind::kHost, HeapKind::kCuda), [](const auto& kind) {
                           return kind.param == HeapKind::kHost ? "host" : "cuda";
                         });

// Negative control: where nobody lies all is well.
TEST_P(HostilePeerTest, NegativeControlTheTruthIsBelieved) {
  HeapGroup group(GetParam(), {0, 1, 2});
  group.bootstrap(kLiar).instead_of = [](Bytes truth) { return truth; };
  group.bootstrap(kLiar).instead_of_descriptors = [](std::vector<int>&) {};
  expect_symmetric(group.allocate(kSize));
}

TEST_P(HostilePeerTest, ADescriptorThatIsADevice) {
  expect_descriptor_refused(::open("/dev/zero", O_RDWR | O_CLOEXEC));
}

TEST_P(HostilePeerTest, ADescriptorThatIsAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd other(ends[1]);
  expect_descriptor_refused(ends[0]);
}

TEST_P(HostilePeerTest, ADescriptorThatIsAFolder) {
  expect_descriptor_refused(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

TEST_P(HostilePeerTest, ADescriptorOfMemoryThatIsTooSmall) {
  const int memory = ::memfd_create("tutti-test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(memory, 4096), 0);
  expect_descriptor_refused(memory);
}

TEST_P(HostilePeerTest, ADescriptorOfMemoryThatCannotBeWritten) {
  auto sealed = make_sealed_memory(Bytes(2 * kSize));
  ASSERT_TRUE(sealed.is_ok());
  expect_descriptor_refused(sealed->release());
}

TEST_P(HostilePeerTest, NoDescriptorAtAll) {
  expect_refused([](BootstrapShim& liar) {
    liar.instead_of_descriptors = [](std::vector<int>& sent) { sent.clear(); };
  });
}

TEST_P(HostilePeerTest, AnOfferOfLessThanWasAskedFor) {
  expect_offer_refused([](Offer& offer) { offer.allocation_bytes = 4096; });
}

TEST_P(HostilePeerTest, AnOfferThatBeginsBehindItsEnd) {
  expect_offer_refused([](Offer& offer) { offer.offset = offer.allocation_bytes - 1; });
}

TEST_P(HostilePeerTest, AnOfferThatWrapsAround) {
  expect_offer_refused([](Offer& offer) { offer.offset = UINT64_MAX - 4096; });
}

TEST_P(HostilePeerTest, AnAddressOfAnotherProcess) {
  expect_offer_refused([](Offer& offer) { offer.how = Offer::How::kPointer; });
}

TEST_P(HostilePeerTest, ADescriptorThatWasNotSent) {
  expect_offer_refused([](Offer& offer) { offer.descriptor = 77; });
}

TEST_P(HostilePeerTest, NoiseInsteadOfAMessage) {
  HeapGroup group(GetParam(), {0, 1, 2});
  group.bootstrap(kLiar).instead_of = [](Bytes) { return Bytes(64, std::byte{0x2a}); };
  for (const auto& result : group.try_allocate(kSize)) {
    EXPECT_EQ(result.status().code(), StatusCode::kMismatch);
  }
  group.bootstrap(kLiar).instead_of = nullptr;
  expect_symmetric(group.allocate(kSize));
}

}  // namespace
}  // namespace tutti::test
