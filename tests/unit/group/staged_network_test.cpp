// Ranks on GPUs, none of which exist, on nodes of their own: collectives through staging, or from
// GPU to GPU, over a network between threads. Kernels of staged operations run on threads, in
// stream order.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fakes/fake_cuda.hpp"
#include "fakes/thread_wire.hpp"
#include "group/communicator_impl.hpp"
#include "support/check.hpp"
#include "support/copy_kernels.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"
#include "support/run_ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using Ints = std::vector<std::int32_t>;
constexpr auto kInt32 = DataType::kInt32;

class StagedGroup {
 public:
  explicit StagedGroup(int ranks, milliseconds timeout = kPatience)
      : cuda(std::make_shared<FakeCudaWorld>(ranks)), kernels_(cuda), groups(ranks) {
    auto bootstraps = make_in_process_group(ranks);
    on_ranks(ranks, [&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      groups[at] = std::make_unique<Communicator>(take(CommunicatorImpl::create(
          std::move(bootstraps[at]),
          {.backend = Backend::kCuda, .device = rank, .timeout = kPatience},
          {.cuda = &cuda, .network = &network_})));
      Stream const first = stream(rank);
      require_ok(barrier(*groups[at], {.stream = first}));  // opens the wire
      finish(first);
      require_ok(groups[at]->status());
      require_ok(groups[at]->set_timeout(timeout));
    });
  }

  // At once: who leaves waits for those that are still there.
  ~StagedGroup() {
    on_all_ranks(size(), [this](int rank) { groups[static_cast<std::size_t>(rank)].reset(); });
  }
  StagedGroup(const StagedGroup&) = delete;
  StagedGroup& operator=(const StagedGroup&) = delete;

  // Of the first `ranks`. Throws what went wrong.
  static void on_ranks(int ranks, const RankFunction& function) {
    const std::string wrong = run_ranks(RankKind::kThreads, ranks, function);
    if (!wrong.empty()) throw Failure(wrong);
  }

  int size() const { return static_cast<int>(groups.size()); }
  ThreadNetwork& network() { return network_.network; }
  Communicator& group(int rank) { return *groups[static_cast<std::size_t>(rank)]; }
  // A new one each time.
  Stream stream(int rank) { return take(cuda.create_stream(rank)); }
  void finish(Stream stream) { require_ok(cuda.synchronize(stream)); }

 private:
  ThreadNetworkDriver network_;

 public:
  FakeCuda cuda;

 private:
  CopyKernels<> kernels_;

 public:
  std::vector<std::unique_ptr<Communicator>> groups;
};

// In a process of its own, since settings are read once. Small staging: most messages are cut.
std::string staged(const std::function<void()>& test, bool direct = false) {
  const auto run = [&] {
    ::setenv("TUTTI_TOPOLOGY", "nolocal", 1);
    ::setenv("TUTTI_NETWORK_DIRECT", direct ? "1" : "0", 1);
    ::setenv("TUTTI_NETWORK_STAGING_BYTES", "4096", 1);
    test();
  };
  return run_isolated(run, kPatience);
}

std::int32_t value(int rank, std::size_t index) {
  return rank * 1'000'003 + static_cast<std::int32_t>(index) * 17;
}
Ints vector_of(int rank, std::size_t count) {
  Ints values(count);
  for (std::size_t k = 0; k < count; ++k) values[k] = value(rank, k);
  return values;
}
Ints sum_of(int ranks, std::size_t count) {
  Ints sum(count);
  for (std::size_t k = 0; k < count; ++k) {
    for (int rank = 0; rank < ranks; ++rank) sum[k] += value(rank, k);
  }
  return sum;
}
void expect_equal(const Ints& seen, const Ints& expected, std::string_view what) {
  require(seen == expected, std::string(what) + " has other values");
}

// One rank of a group, whose calls are right or throw.
class StagedRank {
 public:
  StagedRank(StagedGroup& all, int rank)
      : all_(all), group_(all.group(rank)), rank_(rank), stream_(all.stream(rank)) {}

  std::size_t ranks() const { return static_cast<std::size_t>(all_.size()); }
  void done(const Status& status) {
    require_ok(status);
    all_.finish(stream_);
    require_ok(group_.status());
  }
  Ints piece(const Ints& of, int rank, std::size_t count) const {
    const auto from = of.begin() + static_cast<std::ptrdiff_t>(count) * rank;
    return {from, from + static_cast<std::ptrdiff_t>(count)};
  }

  void reduces(std::size_t count) {
    Ints values = vector_of(rank_, count), output(count);
    const AllReduce call{.input = values.data(),
                         .output = output.data(),
                         .count = count,
                         .dtype = kInt32,
                         .stream = stream_};
    done(all_reduce(group_, call));
    expect_equal(output, sum_of(all_.size(), count), "all_reduce");
    AllReduce in_place = call;
    in_place.output = values.data();
    done(all_reduce(group_, in_place));
    expect_equal(values, output, "all_reduce in place");
  }

  void gathers(std::size_t count) {
    Ints input = vector_of(rank_, count), output(ranks() * count), expected;
    for (int rank = 0; rank < all_.size(); ++rank) {
      const Ints one = vector_of(rank, count);
      expected.insert(expected.end(), one.begin(), one.end());
    }
    AllGather call{.input = input.data(),
                   .output = output.data(),
                   .count = count,
                   .dtype = kInt32,
                   .stream = stream_};
    done(all_gather(group_, call));
    expect_equal(output, expected, "all_gather");
    std::fill(output.begin(), output.end(), 0);
    std::int32_t* const own = output.data() + static_cast<std::size_t>(rank_) * count;
    std::copy(input.begin(), input.end(), own);
    call.input = own;
    done(all_gather(group_, call));
    expect_equal(output, expected, "all_gather in place");
    std::fill(output.begin(), output.end(), 0);
    const bool is_root = rank_ == 1;
    done(gather(group_, {.input = input.data(),
                         .output = is_root ? output.data() : nullptr,
                         .count = count,
                         .dtype = kInt32,
                         .root = 1,
                         .stream = stream_}));
    expect_equal(output, is_root ? expected : Ints(expected.size()), "gather");
  }

  void scatters(std::size_t count) {
    Ints input = vector_of(rank_, ranks() * count), output(count);
    const Ints sum = sum_of(all_.size(), ranks() * count);
    done(reduce_scatter(group_, {.input = input.data(),
                                 .output = output.data(),
                                 .count = count,
                                 .dtype = kInt32,
                                 .stream = stream_}));
    expect_equal(output, piece(sum, rank_, count), "reduce_scatter");
    done(scatter(group_, {.input = rank_ == 2 ? input.data() : nullptr,
                          .output = output.data(),
                          .count = count,
                          .dtype = kInt32,
                          .root = 2,
                          .stream = stream_}));
    expect_equal(output, piece(vector_of(2, ranks() * count), rank_, count), "scatter");
    Ints exchanged(ranks() * count);
    done(all_to_all(group_, {.input = input.data(),
                             .output = exchanged.data(),
                             .count = count,
                             .dtype = kInt32,
                             .stream = stream_}));
    for (int rank = 0; rank < all_.size(); ++rank) {
      expect_equal(piece(exchanged, rank, count),
                   piece(vector_of(rank, ranks() * count), rank_, count), "all_to_all");
    }
    std::int32_t* const own = input.data() + static_cast<std::size_t>(rank_) * count;
    done(reduce_scatter(group_, {.input = input.data(),
                                 .output = own,
                                 .count = count,
                                 .dtype = kInt32,
                                 .stream = stream_}));
    expect_equal(piece(input, rank_, count), piece(sum, rank_, count), "reduce_scatter in place");
  }

  void spreads(std::size_t count) {
    Ints values = vector_of(rank_, count), output(count);
    done(reduce(group_, {.input = values.data(),
                         .output = rank_ == 0 ? output.data() : nullptr,
                         .count = count,
                         .dtype = kInt32,
                         .stream = stream_}));
    expect_equal(output, rank_ == 0 ? sum_of(all_.size(), count) : Ints(count), "reduce");
    done(broadcast(group_, {.input = rank_ == 1 ? values.data() : nullptr,
                            .output = output.data(),
                            .count = count,
                            .dtype = kInt32,
                            .root = 1,
                            .stream = stream_}));
    expect_equal(output, vector_of(1, count), "broadcast");
  }

  // Of bytes at odd addresses.
  void gathers_bytes(std::size_t count) {
    std::vector<std::uint8_t> input(count + 1, static_cast<std::uint8_t>(rank_ + 1));
    std::vector<std::uint8_t> output(ranks() * count + 3, 0);
    done(all_gather(group_, {.input = input.data() + 1,
                             .output = output.data() + 1,
                             .count = count,
                             .dtype = DataType::kUint8,
                             .stream = stream_}));
    std::vector<std::uint8_t> expected(output.size(), 0);
    for (std::size_t k = 0; k < ranks() * count; ++k) {
      expected[k + 1] = static_cast<std::uint8_t>(k / count + 1);
    }
    require(output == expected, "all_gather of bytes has other values, or wrote outside");
  }

  // With all ranks at once, this one included, several to each.
  void exchanges(const std::vector<std::size_t>& counts) {
    std::vector<Ints> sent, came;
    for (std::size_t peer = 0; peer < ranks(); ++peer) {
      for (const std::size_t count : counts) {
        sent.push_back(vector_of(rank_ * 10 + static_cast<int>(peer), count));
        came.emplace_back(count);
      }
    }
    group_start();
    for (std::size_t k = 0; k < sent.size(); ++k) {
      const int peer = static_cast<int>(k / counts.size());
      require_ok(send(group_, {.buffer = sent[k].data(),
                               .count = sent[k].size(),
                               .dtype = kInt32,
                               .peer = peer,
                               .stream = stream_}));
      require_ok(recv(group_, {.buffer = came[k].data(),
                               .count = came[k].size(),
                               .dtype = kInt32,
                               .peer = peer,
                               .stream = stream_}));
    }
    done(group_end());
    for (std::size_t k = 0; k < came.size(); ++k) {
      const int peer = static_cast<int>(k / counts.size());
      expect_equal(came[k], vector_of(peer * 10 + rank_, came[k].size()), "a message");
    }
  }

 private:
  StagedGroup& all_;
  Communicator& group_;
  const int rank_;
  Stream const stream_;
};

TEST(StagedNetworkTest, CollectivesOfAllSizesGoThroughStaging) {
  EXPECT_EQ(staged([] {
              StagedGroup all(3);
              all.on_ranks(3, [&](int number) {
                StagedRank rank(all, number);
                for (const std::size_t count : {0, 1, 85, 1000}) {
                  rank.reduces(count);
                  rank.gathers(count);
                  rank.scatters(count);
                  rank.spreads(count);
                }
                rank.gathers_bytes(1001);
              });
            }),
            "");
}

TEST(StagedNetworkTest, MessagesOfACallWaitForNoOthers) {
  EXPECT_EQ(
      staged([] {
        StagedGroup all(3);
        all.on_ranks(3, [&](int number) { StagedRank(all, number).exchanges({1, 3000, 77}); });
        require(all.network().placed() == 0, "something was not staged");
        // Rank 0 gives both at once; the others take them one after the other.
        constexpr std::size_t kLengthy = 5000, kFew = 10;
        all.on_ranks(2, [&](int rank) {
          Stream const stream = all.stream(rank);
          Ints first = vector_of(rank, kLengthy), second(kFew, rank);
          const int peer = 1 - rank;
          const auto give = [&](Ints& buffer) {
            return Send{.buffer = buffer.data(),
                        .count = buffer.size(),
                        .dtype = kInt32,
                        .peer = peer,
                        .stream = stream};
          };
          const auto receive = [&](Ints& buffer) {
            return Recv{.buffer = buffer.data(),
                        .count = buffer.size(),
                        .dtype = kInt32,
                        .peer = peer,
                        .stream = stream};
          };
          if (rank == 0) {
            group_start();
            require_ok(recv(all.group(0), receive(second)));
            require_ok(send(all.group(0), give(first)));
            require_ok(group_end());
          } else {
            require_ok(recv(all.group(1), receive(first)));
            require_ok(send(all.group(1), give(second)));
          }
          all.finish(stream);
          expect_equal(rank == 0 ? second : first,
                       rank == 0 ? Ints(kFew, 1) : vector_of(0, kLengthy), "a message");
        });
      }),
      "");
}

// Sums, and what is small, are staged.
TEST(StagedNetworkTest, DataGoesFromGpuToGpuIfItIsAskedFor) {
  EXPECT_EQ(staged(
                [] {
                  constexpr std::size_t kLarge = 20'000;
                  StagedGroup all(3);
                  all.on_ranks(3, [&](int rank) { StagedRank(all, rank).reduces(kLarge); });
                  all.on_ranks(3, [&](int rank) { StagedRank(all, rank).gathers(1000); });
                  require(all.network().placed() == 0, "something was not staged");
                  std::size_t before = 0;
                  const auto grows = [&](std::string_view what) {
                    require(all.network().placed() > before, std::string(what) + " was staged");
                    before = all.network().placed();
                  };
                  all.on_ranks(3, [&](int rank) { StagedRank(all, rank).gathers(kLarge); });
                  grows("gathering");
                  all.on_ranks(3, [&](int rank) { StagedRank(all, rank).scatters(kLarge); });
                  grows("scattering");
                  all.on_ranks(3, [&](int rank) { StagedRank(all, rank).spreads(kLarge); });
                  grows("a broadcast");
                  all.on_ranks(3, [&](int rank) { StagedRank(all, rank).gathers_bytes(100'001); });
                  grows("gathering bytes");
                  all.on_ranks(3, [&](int rank) {
                    StagedRank(all, rank).exchanges({1, 3 * kLarge, 77, kLarge, kLarge});
                  });
                  grows("messages");
                  require(all.network().misplaced() == 0, "something had no place");
                },
                true),
            "");
}

TEST(StagedNetworkTest, AFailureEndsWhatIsMovedDirectly) {
  EXPECT_EQ(
      staged(
          [] {
            StagedGroup all(2, milliseconds(300));
            Ints values(20'000), all_values(40'000);
            Stream const stream = all.stream(0);
            const AllGather call{.input = values.data(),
                                 .output = all_values.data(),
                                 .count = values.size(),
                                 .dtype = kInt32,
                                 .stream = stream};
            require_ok(all_gather(all.group(0), call));  // rank 1 does not call
            require_ok(all_gather(all.group(0), call));
            all.finish(stream);
            require_failure(all.group(0).status(), StatusCode::kTimeout, {"all_gather", "rank 1"});
            require(all.network().placed() + all.network().misplaced() == 0,
                    "something was sent to a rank that had no place for it");
          },
          true),
      "");
}

// The stream goes on once the wire has let go of the buffers.
TEST(StagedNetworkTest, AnAbortEndsAMoveBeforeTheBuffersAreFree) {
  EXPECT_EQ(staged(
                [] {
                  StagedGroup all(2);
                  all.network().hold();
                  std::vector<Ints> inputs(2, Ints(20'000)), outputs(2, Ints(40'000));
                  const std::vector<Stream> streams = {all.stream(0), all.stream(1)};
                  all.on_ranks(2, [&](int rank) {
                    const auto at = static_cast<std::size_t>(rank);
                    require_ok(all_gather(all.group(rank), {.input = inputs[at].data(),
                                                            .output = outputs[at].data(),
                                                            .count = inputs[at].size(),
                                                            .dtype = kInt32,
                                                            .stream = streams[at]}));
                  });
                  while (all.network().offered() < 2) std::this_thread::yield();
                  all.group(0).abort("enough");
                  for (Stream const stream : streams) all.finish(stream);
                  require(all.network().offered() == 0, "the wire still reads a buffer");
                },
                true),
            "");
}

// The input is written by what is before the operation in its stream, and the next operation, on
// another stream, reads the output.
TEST(StagedNetworkTest, OperationsAreInStreamOrder) {
  EXPECT_EQ(staged([] {
              StagedGroup all(2);
              all.on_ranks(2, [&](int rank) {
                constexpr std::size_t kValues = 700;
                Stream const first = all.stream(rank), second = all.stream(rank);
                Ints values(kValues), ones(kValues, rank + 1), sum(kValues);
                std::uint64_t word = 0;
                const CudaMemoryOperation wait{CudaMemoryOperation::Kind::kWaitAtLeast, &word, 1};
                require_ok(all.cuda.memory_operations({&wait, 1}, first));
                require_ok(all.cuda.copy_async(values.data(), ones.data(), kValues * 4, first));
                AllReduce call{.input = values.data(),
                               .output = values.data(),
                               .count = kValues,
                               .dtype = kInt32,
                               .stream = first};
                require_ok(all_reduce(all.group(rank), call));
                call.output = sum.data();
                call.stream = second;
                require_ok(all_reduce(all.group(rank), call));
                std::this_thread::sleep_for(milliseconds(20));
                require(sum == Ints(kValues), "it did not wait for its stream");
                std::atomic_ref(word).store(1);
                all.finish(second);
                expect_equal(sum, Ints(kValues, 6), "the second sum");
                all.finish(first);
              });
            }),
            "");
}

TEST(StagedNetworkTest, AFailureEndsWhatIsInTheStreams) {
  EXPECT_EQ(
      staged([] {
        StagedGroup all(2, milliseconds(1000));
        Ints values(5000);
        Stream const stream = all.stream(0);
        const AllReduce call{.input = values.data(),
                             .output = values.data(),
                             .count = values.size(),
                             .dtype = kInt32,
                             .stream = stream};
        require_ok(all_reduce(all.group(0), call));  // rank 1 does not call
        require_ok(all_reduce(all.group(0), call));
        all.finish(stream);
        require_failure(all.group(0).status(), StatusCode::kTimeout, {"all_reduce", "rank 1"});
      }),
      "");
}

TEST(StagedNetworkTest, AnAbortEndsAnOperationThatHasNotBegun) {
  EXPECT_EQ(staged([] {
              StagedGroup all(2);
              Ints values(100, 5);
              Stream const stream = all.stream(0);
              std::uint64_t word = 0;
              const CudaMemoryOperation wait{CudaMemoryOperation::Kind::kWaitAtLeast, &word, 1};
              require_ok(all.cuda.memory_operations({&wait, 1}, stream));
              require_ok(all_reduce(all.group(0), {.input = values.data(),
                                                   .output = values.data(),
                                                   .count = values.size(),
                                                   .dtype = kInt32,
                                                   .stream = stream}));
              all.group(0).abort("enough");
              std::atomic_ref(word).store(1);
              all.finish(stream);
              expect_equal(values, Ints(100, 5), "what was aborted");
              require_failure(all.group(0).status(), StatusCode::kAborted, {"enough"});
            }),
            "");
}

}  // namespace
}  // namespace tutti::test
