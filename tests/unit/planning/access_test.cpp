// How peers get at buffers, and what that has to do with the choice.
#include "planning/access.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "planning/model.hpp"
#include "planning/selection.hpp"
#include "unit/planning/entries.hpp"
#include "unit/planning/rows.hpp"

namespace tutti {
namespace {

// 1 MiB by this algorithm, with all memory that it may need.
Request request_of(const Algorithm& row, BufferReach reach) {
  Request request = bytes_of(MiB);
  request.collective = row.collective;
  request.input_reach = request.output_reach = reach;
  request.ring_bytes = request.staging_bytes = request.packet_bytes = 8 * MiB;
  request.algorithm = row.id;
  return request;
}

// Memory of which copies may wait for each other: for kernels it is as any that peers reach.
TEST(Access, CopyEnginesStageWhatOnlyKernelsShouldReach) {
  int staged = 0;
  for (const Algorithm& row : catalogue()) {
    const bool touched = row.peers_read_input || row.peers_write_output;
    if (row.cuda == nullptr || row.sends_messages || !touched) continue;
    const Request request = request_of(row, BufferReach::kKernels);
    const auto plan = select({request, eight_h200(), {}});
    if (!plan.is_ok()) continue;
    const bool by_copies = row.program != nullptr;
    EXPECT_EQ(plan->staged(), by_copies || stages_any_buffer(row)) << row.id;
    staged += by_copies ? 1 : 0;
  }
  EXPECT_GE(staged, 3);
}

// In a capture that registers its buffers. A buffer that only the root has cannot be registered.
TEST(Access, LateRegistrationLeavesOutBuffersOfTheRootAlone) {
  int late = 0;
  for (const Algorithm& row : catalogue()) {
    const bool touched = row.peers_read_input || row.peers_write_output;
    if (row.cuda == nullptr || row.sends_messages || !touched) continue;
    Request request = request_of(row, BufferReach::kOwner);
    request.registers_late = request.registers_now = true;
    const auto plan = select({request, eight_h200(), {}});
    if (!plan.is_ok()) continue;
    EXPECT_EQ(plan->access == BufferAccess::kLate, !stages_any_buffer(row)) << row.id;
    late += plan->access == BufferAccess::kLate ? 1 : 0;
  }
  EXPECT_GE(late, 3);
}

// As if they were symmetric. A buffer that only the root has is staged even so.
TEST(Access, PlainBuffersThatRanksAddressAreNotStaged) {
  Topology topology = eight_h200();
  topology.backend = Backend::kHost;
  topology.gpu.clear();
  topology.nccl = false;
  topology.ranks = 4;
  int addressed = 0;
  for (const Algorithm& row : catalogue()) {
    if (row.collective == Collective::kSendRecv) continue;
    Request request = request_of(row, BufferReach::kOwner);
    request.by_address = true;
    request.hidden = row.collective == Collective::kAllReduceResidualRmsNorm ? 1024 : 0;
    const auto plan = select({request, topology, {}});
    if (!plan.is_ok()) continue;
    const bool touched = row.peers_read_input || row.peers_write_output;
    EXPECT_EQ(plan->staged(), stages_any_buffer(row)) << row.id;
    const bool by_address = plan->access == BufferAccess::kByAddress;
    EXPECT_EQ(by_address, touched && !plan->staged()) << row.id;
    addressed += by_address ? 1 : 0;
  }
  EXPECT_GT(addressed, 20);
}

// A row asks for the buffers that its peers touch, and for no other.
TEST(Access, OfTheBuffersThatPeersTouchAlone) {
  int reading = 0, writing = 0;
  for (const Algorithm& row : catalogue()) {
    if (root_side(row.collective) != RootSide::kNone || row.sends_messages) continue;
    Request input = request_of(row, BufferReach::kPeers), output = input;
    input.output_reach = output.input_reach = BufferReach::kOwner;
    const bool reads = row.peers_read_input, writes = row.peers_write_output;
    EXPECT_EQ(access_to(row, input, eight_h200()) == BufferAccess::kStaged, writes) << row.id;
    EXPECT_EQ(access_to(row, output, eight_h200()) == BufferAccess::kStaged, reads) << row.id;
    reading += reads && !writes ? 1 : 0;
    writing += writes && !reads ? 1 : 0;
  }
  EXPECT_GE(reading, 3);
  EXPECT_GE(writing, 3);
}

// What the model counts as staged is what the plan stages: of copies, which a late registration
// does not reach, and of the switch, which reaches no buffer but those that are bound to it.
TEST(Access, TheModelStagesWhatThePlanStages) {
  Topology topology = eight_h200();
  topology.multicast = true;
  const auto stages = [&](const Algorithm& row, const Request& request) {
    return load_of({request, topology, {}}, row).staging_bytes > 0;
  };
  int copies = 0, by_switch = 0;
  for (const Algorithm& row : catalogue()) {
    const bool touched = row.peers_read_input || row.peers_write_output;
    if (row.cuda == nullptr || row.sends_messages || !touched || stages_any_buffer(row)) continue;
    if (has_ring_slots(row) || row.pushes_through_staging) continue;
    Request late = request_of(row, BufferReach::kOwner);
    late.registers_late = true;
    EXPECT_EQ(stages(row, late), access_to(row, late, topology) == BufferAccess::kStaged) << row.id;
    if (row.program != nullptr) {
      EXPECT_TRUE(stages(row, late)) << row.id;
      ++copies;
    }
    if ((row.needs & kNeedsMulticast) == 0) continue;
    EXPECT_TRUE(stages(row, request_of(row, BufferReach::kPeers))) << row.id;
    EXPECT_FALSE(stages(row, request_of(row, BufferReach::kSwitch))) << row.id;
    ++by_switch;
  }
  EXPECT_GE(copies, 3);
  EXPECT_GE(by_switch, 3);
}

// The other ranks do not know of a buffer that the root alone has, nor whether a rank has any part
// of uneven pieces.
TEST(Access, SymmetricIsSaidOfBuffersThatAllRanksHave) {
  const auto symmetric = [](Collective collective, BufferReach input, BufferReach output) {
    Request request;
    request.collective = collective;
    request.input_reach = input;
    request.output_reach = output;
    return request.symmetric();
  };
  constexpr auto kOwner = BufferReach::kOwner, kPeers = BufferReach::kPeers;
  EXPECT_TRUE(symmetric(Collective::kAllReduce, kPeers, kPeers));
  EXPECT_FALSE(symmetric(Collective::kAllReduce, kPeers, kOwner));
  EXPECT_FALSE(symmetric(Collective::kAllReduce, kOwner, kPeers));
  EXPECT_TRUE(symmetric(Collective::kScatter, kOwner, kPeers));
  EXPECT_FALSE(symmetric(Collective::kScatter, kPeers, kOwner));
  EXPECT_TRUE(symmetric(Collective::kGather, kPeers, kOwner));
  EXPECT_FALSE(symmetric(Collective::kGather, kOwner, kPeers));
  EXPECT_TRUE(symmetric(Collective::kAllGatherV, kOwner, kPeers));
  EXPECT_FALSE(symmetric(Collective::kAllGatherV, kPeers, kOwner));
  EXPECT_TRUE(symmetric(Collective::kReduceScatterV, kPeers, kOwner));
  EXPECT_FALSE(symmetric(Collective::kReduceScatterV, kOwner, kPeers));
}

}  // namespace
}  // namespace tutti
