#include "drivers/nccl.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "base/try.hpp"
#include "drivers/nccl_library.hpp"
#include "fakes/stub_nccl.hpp"
#include "support/patience.hpp"

namespace tutti {
namespace {

using std::chrono::milliseconds;

Deadline soon() { return Deadline(test::kPatience); }

// The driver over the stand-in library, whose state is fresh for each test.
class NcclOverStub : public testing::Test {
 protected:
  void SetUp() override {
    const auto library = DynamicLibrary::open(STUB_NCCL);
    ASSERT_TRUE(library.is_ok()) << library.status().message();
    StubNccl* (*find_state)() = nullptr;
    ASSERT_TRUE(library->find("stub_nccl_state", find_state));
    state_ = find_state();
    std::destroy_at(state_);
    std::construct_at(state_);
    reopen();
  }

  void reopen() {
    std::string why;
    nccl_ = open_nccl(STUB_NCCL, &why);
    ASSERT_NE(nccl_, nullptr) << why;
  }

  // Of what is given up on another thread.
  void wait_for_an_abort() {
    for (const Deadline end = soon(); !end.passed() && state_->aborts == 0;) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  NcclComm join() {
    const auto comm = nccl_->create({NcclId{}, 0, 1}, soon());
    EXPECT_TRUE(comm.is_ok()) << comm.status().message();
    return comm.is_ok() ? *comm : nullptr;
  }

  Status reduce(DataType dtype, ReduceOp op) {
    NcclReduction call;
    call.count = 17;
    call.dtype = dtype;
    call.op = op;
    return nccl_->all_reduce(join(), call);
  }

  StubNccl* state_ = nullptr;
  std::unique_ptr<NcclDriver> nccl_;
};

TEST_F(NcclOverStub, PassesTheIdByValue) {
  const auto id = nccl_->unique_id();
  ASSERT_TRUE(id.is_ok());
  ASSERT_TRUE(nccl_->create({*id, 2, 3}, soon()).is_ok());
  EXPECT_EQ(state_->rank, 2);
  EXPECT_EQ(state_->size, 3);
  EXPECT_EQ(std::string(state_->id.data(), state_->id.size()), std::string(128, 'x'));
}

TEST_F(NcclOverStub, GathersBytes) {
  int word = 0;
  const Stream stream = reinterpret_cast<Stream>(&word);
  EXPECT_TRUE(nccl_->all_gather(join(), {.bytes = 34, .stream = stream}));
  EXPECT_EQ(state_->count, 34U);
  EXPECT_EQ(state_->dtype, 1);  // ncclUint8
  EXPECT_EQ(state_->stream, stream);
  const NcclComm comm = join();
  state_->next_result = 1;
  const Status failed = nccl_->all_gather(comm, {.bytes = 34});
  EXPECT_EQ(failed.code(), StatusCode::kNccl);
}

// As all_reduce, with another entry of NCCL's.
TEST_F(NcclOverStub, ReducesAndScatters) {
  const auto scatter = [&](DataType dtype, ReduceOp op) {
    return nccl_->reduce_scatter(join(), {.count = 34, .dtype = dtype, .op = op});
  };
  EXPECT_TRUE(scatter(DataType::kBfloat16, ReduceOp::max()));
  EXPECT_EQ(state_->scatters, 1);
  EXPECT_EQ(state_->count, 34U);
  EXPECT_EQ(state_->dtype, 9);  // ncclBfloat16
  EXPECT_EQ(state_->op, 2);     // ncclMax
  EXPECT_TRUE(scatter(DataType::kFloat64, ReduceOp::pre_mul_sum(-3.25)));
  EXPECT_EQ(std::bit_cast<double>(state_->scalar), -3.25);
  EXPECT_EQ(state_->scatters, 2);
  EXPECT_EQ(state_->operations_open, 0);
  const NcclComm comm = join();
  state_->next_result = 1;
  const Status failed = nccl_->reduce_scatter(comm, {.count = 34});
  EXPECT_EQ(failed.code(), StatusCode::kNccl);
  EXPECT_NE(failed.message().find("ncclReduceScatter"), std::string::npos) << failed.message();
}

TEST_F(NcclOverStub, ReducesToARootAndBroadcastsFromOne) {
  EXPECT_TRUE(nccl_->reduce(
      join(), {.count = 34, .dtype = DataType::kBfloat16, .op = ReduceOp::max(), .root = 3}));
  EXPECT_EQ(state_->root, 3);
  EXPECT_EQ(state_->count, 34U);
  EXPECT_EQ(state_->dtype, 9);  // ncclBfloat16
  EXPECT_EQ(state_->op, 2);     // ncclMax
  EXPECT_TRUE(nccl_->broadcast(join(), {.bytes = 17, .root = 2}));
  EXPECT_EQ(state_->root, 2);
  EXPECT_EQ(state_->count, 17U);
  EXPECT_EQ(state_->dtype, 1);  // ncclUint8
  const NcclComm comm = join();
  state_->next_result = 1;
  EXPECT_NE(nccl_->reduce(comm, {.count = 1}).message().find("ncclReduce"), std::string::npos);
  state_->next_result = 1;
  EXPECT_NE(nccl_->broadcast(comm, {}).message().find("ncclBroadcast"), std::string::npos);
}

// A communicator whose collectives take copy engines is asked for by its configuration.
TEST_F(NcclOverStub, CopyEnginesAreAPolicyOfTheCommunicator) {
  const NcclComm kernels = join();
  EXPECT_NE(kernels, nullptr);
  EXPECT_EQ(state_->cta_policy, -1) << "whose default no version has to be told";
  const auto copies = nccl_->create({NcclId{}, 1, 2, NcclMover::kCopyEngines}, soon());
  ASSERT_TRUE(copies.is_ok()) << copies.status().message();
  EXPECT_EQ(state_->cta_policy, 2);  // NCCL_CTA_POLICY_ZERO
  EXPECT_EQ(state_->rank, 1);
  EXPECT_TRUE(nccl_->move_pieces(*copies, {.bytes = 34}));
  EXPECT_EQ(state_->exchanges_at_once, 1);
  EXPECT_EQ(state_->count, 34U);
  EXPECT_EQ(state_->dtype, 1);  // ncclUint8
  state_->next_result = 1;
  EXPECT_NE(nccl_->move_pieces(*copies, {}).message().find("ncclAlltoAll"), std::string::npos);
  using Way = NcclPieces::Way;
  for (const auto& [way, name] :
       {std::pair(Way::kGather, "ncclGather"), std::pair(Way::kScatter, "ncclScatter")}) {
    const NcclPieces pieces{.way = way, .bytes = 56, .root = 1};
    EXPECT_TRUE(nccl_->move_pieces(*copies, pieces));
    EXPECT_EQ(state_->count, 56U);
    EXPECT_EQ(state_->root, 1);
    state_->next_result = 1;
    EXPECT_NE(nccl_->move_pieces(*copies, pieces).message().find(name), std::string::npos);
  }
  EXPECT_EQ(state_->gathers_at_once, 2);
  EXPECT_EQ(state_->scatters_at_once, 2);
}

TEST_F(NcclOverStub, OldVersionsHaveNoCopyEngines) {
  state_->version = 22703;
  reopen();
  const auto refused = nccl_->create({NcclId{}, 0, 1, NcclMover::kCopyEngines}, soon()).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
  EXPECT_NE(refused.message().find("2.28"), std::string::npos) << refused.message();
  EXPECT_EQ(state_->inits, 0);
  std::string why;
  const auto old = open_nccl(STUB_NCCL_OLD, &why);
  ASSERT_NE(old, nullptr) << why;
  EXPECT_EQ(old->move_pieces(nullptr, {}).code(), StatusCode::kUnsupported);
}

// A piece to each rank and one from each, all in one group.
TEST_F(NcclOverStub, ExchangesPieces) {
  std::array<std::byte, 30> input{}, output{};
  state_->sent.clear();
  state_->received.clear();
  const NcclComm comm = join();
  NcclExchange call;
  for (int peer = 0; peer < 3; ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    call.sends.push_back({peer, &input[10 * at], 10});
    call.receives.push_back({peer, &output[10 * at], 10});
  }
  EXPECT_TRUE(nccl_->exchange(comm, call));
  EXPECT_EQ(state_->dtype, 1);  // ncclUint8
  ASSERT_EQ(state_->sent.size(), 3U);
  ASSERT_EQ(state_->received.size(), 3U);
  for (int peer = 0; peer < 3; ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    EXPECT_EQ(state_->sent[at].at, &input[10 * at]);
    EXPECT_EQ(state_->received[at].at, &output[10 * at]);
    EXPECT_EQ(state_->sent[at].peer, peer);
    EXPECT_EQ(state_->received[at].peer, peer);
    EXPECT_EQ(state_->sent[at].count, 10U);
    EXPECT_EQ(state_->received[at].count, 10U);
  }
  EXPECT_EQ(state_->groups_open, 0);
}

// What fails inside a group leaves none open.
TEST_F(NcclOverStub, AnExchangeThatFailsEndsItsGroup) {
  std::array<std::byte, 2> bytes{};
  const NcclComm comm = join();
  state_->fail_sends = true;
  const Status failed =
      nccl_->exchange(comm, {.sends = {{0, bytes.data(), 1}}, .receives = {{0, &bytes[1], 1}}});
  state_->fail_sends = false;
  EXPECT_EQ(failed.code(), StatusCode::kNccl);
  EXPECT_EQ(state_->groups_open, 0);
}

TEST_F(NcclOverStub, NamesElementTypesAsNcclDoes) {
  const std::array<std::pair<DataType, int>, 12> table = {{{DataType::kInt8, 0},
                                                           {DataType::kUint8, 1},
                                                           {DataType::kInt32, 2},
                                                           {DataType::kUint32, 3},
                                                           {DataType::kInt64, 4},
                                                           {DataType::kUint64, 5},
                                                           {DataType::kFloat16, 6},
                                                           {DataType::kFloat32, 7},
                                                           {DataType::kFloat64, 8},
                                                           {DataType::kBfloat16, 9},
                                                           {DataType::kFloat8E4M3, 10},
                                                           {DataType::kFloat8E5M2, 11}}};
  for (const auto& [dtype, expected] : table) {
    ASSERT_TRUE(reduce(dtype, ReduceOp::sum()).is_ok()) << to_string(dtype);
    EXPECT_EQ(state_->dtype, expected) << to_string(dtype);
    EXPECT_EQ(state_->count, 17U);
  }
}

TEST_F(NcclOverStub, NamesOperationsAsNcclDoes) {
  const std::array<std::pair<ReduceOp, int>, 5> table = {{{ReduceOp::sum(), 0},
                                                          {ReduceOp::prod(), 1},
                                                          {ReduceOp::max(), 2},
                                                          {ReduceOp::min(), 3},
                                                          {ReduceOp::avg(), 4}}};
  for (const auto& [op, expected] : table) {
    ASSERT_TRUE(reduce(DataType::kFloat32, op).is_ok()) << to_string(op.kind);
    EXPECT_EQ(state_->op, expected) << to_string(op.kind);
  }
}

TEST_F(NcclOverStub, GivesThePreMultiplierInTheElementsOwnType) {
  ASSERT_TRUE(reduce(DataType::kBfloat16, ReduceOp::pre_mul_sum(0.5)).is_ok());
  EXPECT_EQ(state_->scalar[0], 0x00);  // 0.5 is 0x3f00
  EXPECT_EQ(state_->scalar[1], 0x3f);
  EXPECT_EQ(state_->residence, 1);
  EXPECT_EQ(state_->op, 5);
  EXPECT_EQ(state_->operations_open, 0);

  ASSERT_TRUE(reduce(DataType::kFloat64, ReduceOp::pre_mul_sum(-3.25)).is_ok());
  EXPECT_EQ(std::bit_cast<double>(state_->scalar), -3.25);

  ASSERT_TRUE(reduce(DataType::kInt32, ReduceOp::pre_mul_sum(-7)).is_ok());
  std::int32_t integer = 0;
  std::memcpy(&integer, state_->scalar.data(), sizeof integer);
  EXPECT_EQ(integer, -7);

  ASSERT_TRUE(reduce(DataType::kUint64, ReduceOp::pre_mul_sum(~std::uint64_t{0})).is_ok());
  EXPECT_EQ(std::bit_cast<std::uint64_t>(state_->scalar), ~std::uint64_t{0});

  const std::int64_t in_memory = 77;
  ASSERT_TRUE(reduce(DataType::kInt64, ReduceOp::pre_mul_sum_at(&in_memory)).is_ok());
  EXPECT_EQ(state_->scalar_at, &in_memory);
  EXPECT_EQ(state_->residence, 0);  // ncclScalarDevice
  EXPECT_EQ(state_->operations_open, 0);
}

TEST_F(NcclOverStub, Fp8NeedsVersion224) {
  state_->version = 22304;
  reopen();
  const Status refused = reduce(DataType::kFloat8E4M3, ReduceOp::sum());
  EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
  EXPECT_NE(refused.message().find("2.23.4"), std::string::npos) << refused.message();
  EXPECT_TRUE(reduce(DataType::kBfloat16, ReduceOp::sum()).is_ok());
}

TEST_F(NcclOverStub, FailuresCarryNcclsWords) {
  NcclComm comm = join();
  state_->next_result = 1;
  const Status failed = nccl_->all_reduce(comm, NcclReduction{});
  EXPECT_EQ(failed.code(), StatusCode::kNccl);
  for (const char* part : {"ncclAllReduce", "stub error", "the last words"}) {
    EXPECT_NE(failed.message().find(part), std::string::npos) << failed.message();
  }
}

TEST_F(NcclOverStub, AsynchronousErrorsBlameThePeer) {
  NcclComm comm = join();
  EXPECT_TRUE(nccl_->async_error(comm).is_ok());
  state_->async_error = 7;  // still at it
  EXPECT_TRUE(nccl_->async_error(comm).is_ok());
  state_->async_error = 6;
  EXPECT_EQ(nccl_->async_error(comm).code(), StatusCode::kPeerFailed);
  state_->async_error = 2;
  EXPECT_EQ(nccl_->async_error(comm).code(), StatusCode::kNccl);
}

TEST_F(NcclOverStub, NonBlockingCommunicatorsAreRefusedWithAdvice) {
  state_->next_result = 7;
  const auto comm = nccl_->create({NcclId{}, 0, 2}, soon());
  ASSERT_FALSE(comm.is_ok());
  EXPECT_EQ(comm.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(comm.status().message().find("NCCL_COMM_BLOCKING"), std::string::npos);
  // What is half made is given up meanwhile; not in the middle of another test.
  wait_for_an_abort();
}

TEST_F(NcclOverStub, AFailedInitLeavesNothingBehind) {
  state_->next_result = 3;
  EXPECT_EQ(nccl_->create({NcclId{}, 0, 2}, soon()).status().code(), StatusCode::kNccl);
  wait_for_an_abort();
  EXPECT_EQ(state_->aborts, 1);
}

TEST_F(NcclOverStub, WaitingForTheOthersEnds) {
  state_->hold_init = true;
  const auto comm = nccl_->create({NcclId{}, 1, 4}, Deadline(milliseconds(30)));
  ASSERT_FALSE(comm.is_ok());
  EXPECT_EQ(comm.status().code(), StatusCode::kTimeout);
  EXPECT_NE(comm.status().message().find("rank 1 of 4"), std::string::npos);
  // They come after all: what nobody waits for any more is given up.
  EXPECT_EQ(state_->aborts, 0);
  state_->hold_init = false;
  wait_for_an_abort();
  EXPECT_EQ(state_->aborts, 1);
}

TEST_F(NcclOverStub, WhoeverGivesUpWaitingIsLeftAlone) {
  state_->hold_init = true;
  int asked = 0;
  const auto comm = nccl_->create({NcclId{}, 1, 4}, soon(), [&] { return ++asked == 3; });
  EXPECT_EQ(comm.status().code(), StatusCode::kAborted);
  EXPECT_EQ(asked, 3);
  state_->hold_init = false;
  wait_for_an_abort();
  EXPECT_EQ(state_->aborts, 1);
}

TEST_F(NcclOverStub, DestroyAbortAndInterruptReachTheLibrary) {
  ASSERT_TRUE(nccl_->destroy(join()).is_ok());
  ASSERT_TRUE(nccl_->abort(join()).is_ok());
  ASSERT_TRUE(nccl_->interrupt(join()).is_ok());
  EXPECT_EQ(state_->revokes, 1);
  EXPECT_EQ(state_->destroys, 1);
  EXPECT_EQ(state_->aborts, 1);
}

TEST_F(NcclOverStub, WindowsReachTheLibrary) {
  NcclComm comm = join();
  alignas(64) std::array<std::byte, 64> memory{};
  const auto window = nccl_->register_window(comm, memory.data(), memory.size());
  ASSERT_TRUE(window.is_ok()) << window.status().message();
  EXPECT_EQ(state_->window_base, memory.data());
  EXPECT_EQ(state_->window_bytes, memory.size());
  EXPECT_EQ(state_->window_flags, 1) << "NCCL_WIN_COLL_SYMMETRIC";
  EXPECT_EQ(state_->windows_open, 1);
  EXPECT_TRUE(nccl_->deregister_window(comm, *window).is_ok());
  EXPECT_EQ(state_->windows_open, 0);
  EXPECT_EQ(nccl_->version_number(), 22809);

  state_->next_result = 3;
  const Status failed = nccl_->register_window(comm, memory.data(), memory.size()).status();
  EXPECT_EQ(failed.code(), StatusCode::kNccl);
  EXPECT_NE(failed.message().find("ncclCommWindowRegister"), std::string::npos);
}

TEST_F(NcclOverStub, SuccessWithoutAWindowIsNone) {
  state_->makes_windows = false;
  const Status none = nccl_->register_window(join(), nullptr, 0).status();
  EXPECT_EQ(none.code(), StatusCode::kUnsupported);
  EXPECT_NE(none.message().find("NCCL_WIN_ENABLE"), std::string::npos) << none.message();
}

// By its version, and by what it has.
TEST_F(NcclOverStub, WindowsNeedVersion227) {
  const auto refused = [](NcclDriver& nccl, const char* version) {
    const Status status = nccl.register_window(nullptr, nullptr, 0).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    for (const char* part : {version, "2.27 or newer"}) {
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    }
  };
  state_->version = 22605;
  reopen();
  refused(*nccl_, "2.26.5");
  EXPECT_EQ(state_->window_flags, -1) << "it was called";
  const auto old = open_nccl(STUB_NCCL_OLD);
  ASSERT_NE(old, nullptr);
  refused(*old, "2.28.9");
}

TEST(Nccl, VersionsInWords) {
  EXPECT_EQ(nccl_version_text(22809), "2.28.9");
  EXPECT_EQ(nccl_version_text(22304), "2.23.4");
  EXPECT_EQ(nccl_version_text(2804), "2.8.4");
}

TEST(Nccl, AnAbsentLibraryIsNamedWithAdvice) {
  const auto found = find_nccl("/nowhere/libnccl.so.2");
  if (DynamicLibrary::open_loaded("libnccl.so.2").is_ok()) GTEST_SKIP() << "NCCL is loaded here";
  ASSERT_FALSE(found.is_ok());
  EXPECT_EQ(found.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(found.status().message().find("TUTTI_NCCL_LIBRARY=/nowhere/libnccl.so.2"),
            std::string::npos)
      << found.status().message();
}

TEST(Nccl, ALibraryThatIsNoNcclIsRefused) {
  std::string why;
  EXPECT_EQ(open_nccl(STUB_NVML, &why), nullptr);
  EXPECT_NE(why.find("ncclAllReduce"), std::string::npos) << why;
}

}  // namespace
}  // namespace tutti
