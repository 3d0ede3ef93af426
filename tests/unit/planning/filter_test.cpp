#include "planning/filter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/planning/entries.hpp"
#include "unit/planning/rows.hpp"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const Algorithm& row_of(std::string_view name) {
  return **find_algorithm(Collective::kAllReduce, name, kTestRows);
}

std::string reason(std::string_view name, const Topology& topology, const Request& request = {}) {
  return why_not(row_of(name), request, topology);
}

TEST(Filter, WhatIsThereCanRun) {
  EXPECT_THAT(reason("quick", eight_h200()), IsEmpty());
  EXPECT_THAT(reason("nccl", eight_h200()), IsEmpty());
}

TEST(Filter, Backend) {
  Topology topology = eight_h200();
  topology.backend = Backend::kHost;
  EXPECT_THAT(reason("quick", topology), IsEmpty());
  EXPECT_THAT(reason("ring", topology), HasSubstr("not available on the host backend"));
  EXPECT_THAT(reason("nccl", topology), HasSubstr("not available on the host backend"));
  Algorithm without_kernel = row_of("quick");
  without_kernel.cuda = nullptr;
  EXPECT_THAT(why_not(without_kernel, {}, eight_h200()), HasSubstr("the cuda backend"));
}

TEST(Filter, RanksUpToTheRowsLimitInclusive) {
  Topology topology = eight_h200();
  EXPECT_THAT(reason("quick", topology), IsEmpty());
  topology.ranks = 9;
  EXPECT_THAT(reason("quick", topology), HasSubstr("at most 8 ranks per node, and a node has 9"));
  topology.backend = Backend::kHost;
  topology.ranks = 16;
  EXPECT_THAT(reason("quick", topology), IsEmpty());
  topology.ranks = 17;
  EXPECT_THAT(reason("quick", topology), HasSubstr("at most 16 ranks"));
}

TEST(Filter, TypesAndReductions) {
  Request request;
  EXPECT_THAT(reason("ring", eight_h200(), request), HasSubstr("does not support sum of fp32"));
  request.dtype = DataType::kBfloat16;
  EXPECT_THAT(reason("ring", eight_h200(), request), IsEmpty());
  request.op = OpKind::kMax;
  EXPECT_THAT(reason("ring", eight_h200(), request), HasSubstr("does not support max of bf16"));
}

TEST(Filter, NcclDoesNotScaleForOneRank) {
  Topology topology = eight_h200();
  Request request;
  request.op = OpKind::kAvg;
  EXPECT_THAT(reason("nccl", topology, request), IsEmpty());
  topology.ranks = 1;
  EXPECT_THAT(reason("nccl", topology, request), HasSubstr("unwritten in avg of one rank"));
  request.op = OpKind::kSum;
  EXPECT_THAT(reason("nccl", topology, request), IsEmpty());
}

// Each reason by itself, then none; in an order that says first what nobody can change.
TEST(Filter, WindowsOfNccl) {
  Topology topology = eight_h200();
  Request request;
  const auto why = [&] { return reason("window", topology, request); };
  EXPECT_THAT(why(), IsEmpty());
  request.set_plain();
  EXPECT_THAT(why(), HasSubstr("memory that this communicator allocated"));
  request.input_reach = request.output_reach = BufferReach::kPeers;
  request.in_blocks = false;  // registered memory of the user's
  EXPECT_THAT(why(), HasSubstr("memory that this communicator allocated"));
  request.in_blocks = true;
  request.capturing = true;
  request.windows.ready = false;
  EXPECT_THAT(why(), HasSubstr("call prepare_nccl() with this row in TUTTI_TUNE"));
  request.nccl_ready = false;
  EXPECT_THAT(why(), HasSubstr("needs NCCL's communicator"));
  request = {};
  request.windows.none = "rank 3: no room";
  EXPECT_THAT(why(), HasSubstr("there are none: rank 3: no room"));
  topology.nccl_version = 22605;
  EXPECT_THAT(why(),
              HasSubstr("needs NCCL 2.27 or newer on every rank, and the oldest is NCCL 2.26.5"));
  topology.nccl = false;
  EXPECT_THAT(why(), HasSubstr("TUTTI_NCCL_LIBRARY"));
  topology = eight_h200();
  request = {};
  topology.ranks = 1;
  EXPECT_THAT(why(), HasSubstr("two ranks or more"));
  topology.ranks = 8;
  request.deterministic = true;
  EXPECT_THAT(why(), HasSubstr("rank_order"));
}

TEST(Filter, WindowsThatCannotBeAbortedAreHadByNameAlone) {
  const Algorithm& row = **find_algorithm(Collective::kAllReduce, "window", kTestRows);
  Topology topology = eight_h200();
  EXPECT_THAT(why_not_by_itself(row, Request{}, topology, MeasuredWith::kSymmetric), IsEmpty());
  EXPECT_THAT(why_not_by_itself(row, Request{}, topology, MeasuredWith::kNothing),
              HasSubstr("only by a tuning table"));
  topology.nccl_version = 22803;
  EXPECT_THAT(why_not_by_itself(row, Request{}, topology, MeasuredWith::kSymmetric),
              HasSubstr("NCCL 2.29.7 or newer: NCCL 2.28.3 cannot abort"));
  EXPECT_THAT(why_not(row, Request{}, topology), IsEmpty());
}

// Of a row that takes a slot of the message's size per rank; integers travel in twice the bytes.
TEST(Filter, RoomForPackets) {
  Algorithm row = kTestRows[0];
  row.packets = [](const Extent& on_wire) { return PacketUse{on_wire.bytes, on_wire.ranks}; };
  Request request;
  request.count = 1000;
  request.packet_bytes = 32000;
  EXPECT_THAT(why_not(row, request, eight_h200()), IsEmpty());
  request.count = 1001;
  EXPECT_THAT(why_not(row, request, eight_h200()),
              HasSubstr("a message of 4004 needs 32032 of them, and there is room for "));
  request.count = 500;
  request.dtype = DataType::kInt32;
  EXPECT_THAT(why_not(row, request, eight_h200()), IsEmpty());
  request.count = 501;
  EXPECT_THAT(why_not(row, request, eight_h200()), HasSubstr("needs"));
  request.count = 0;
  request.packet_bytes = 0;
  EXPECT_THAT(why_not(row, request, eight_h200()), HasSubstr("room for 0 (TUTTI_PACKET_BYTES)"));
  request.capturing = true;
  EXPECT_THAT(why_not(row, request, eight_h200()), HasSubstr("on how many streams"));
}

// Through slots on GPUs, or where somebody has measured it.
TEST(Filter, RingsThroughSlotsAreHadWhereATableNamesThem) {
  Algorithm row = kTestRows[0];
  row.ring_directions = 1;
  row.peers_write_output = row.in_place_needs_staging = true;
  Topology host = eight_h200();
  host.backend = Backend::kHost;
  Request direct, in_place, plain;
  in_place.in_place = true;
  plain.set_plain();
  const auto why = [&](const Request& request, const Topology& topology, MeasuredWith measured) {
    return why_not_by_itself(row, request, topology, measured);
  };
  EXPECT_THAT(why(direct, host, MeasuredWith::kNothing), IsEmpty());
  for (const Request* request : {&in_place, &plain}) {
    EXPECT_THAT(why(*request, eight_h200(), MeasuredWith::kNothing), HasSubstr("out of place"));
    EXPECT_THAT(why(*request, eight_h200(), MeasuredWith::kSymmetric), IsEmpty());
    EXPECT_THAT(why(*request, host, MeasuredWith::kSymmetric), HasSubstr("symmetric buffers"));
    EXPECT_THAT(why(*request, host, MeasuredWith::kPlain), IsEmpty());
  }
  row.in_place_needs_staging = false;
  EXPECT_THAT(why(in_place, host, MeasuredWith::kNothing), IsEmpty());
  row.peers_write_output = false;  // its chunks go through slots whatever the buffers are
  EXPECT_THAT(why(plain, host, MeasuredWith::kNothing), IsEmpty());
}

TEST(Filter, RingsNeedStaging) {
  Algorithm row = kTestRows[0];
  row.ring_directions = 1;
  Request request;
  EXPECT_THAT(why_not(row, request, eight_h200()), HasSubstr("needs staging for its chunks"));
  request.ring_bytes = 4096;
  EXPECT_THAT(why_not(row, request, eight_h200()), IsEmpty());
}

TEST(Filter, WhatIsNotMeasuredIsNotTakenByItself) {
  Algorithm row = kTestRows[0];
  const auto why = [&row](MeasuredWith measured) {
    return why_not_by_itself(row, Request{}, eight_h200(), measured);
  };
  EXPECT_THAT(why(MeasuredWith::kNothing), IsEmpty());
  row.only_where_measured = true;
  EXPECT_THAT(why(MeasuredWith::kSymmetric), IsEmpty());
  EXPECT_THAT(why(MeasuredWith::kNothing), HasSubstr("only by a tuning table"));
  EXPECT_THAT(why_not(row, Request{}, eight_h200()), IsEmpty()) << "it may be asked for";
}

TEST(Filter, Machine) {
  Topology topology = eight_h200();
  topology.nccl = false;
  EXPECT_THAT(reason("nccl", topology), HasSubstr("TUTTI_NCCL_LIBRARY"));
  topology.within_nodes = Reach::kNone;
  EXPECT_THAT(reason("quick", topology), HasSubstr("needs peer access"));
  EXPECT_THAT(reason("switch", topology), HasSubstr("needs peer access"));
}

TEST(Filter, GpusThatAreNewEnough) {
  Algorithm row = row_of("quick");
  row.least_compute = 90;
  Topology topology = eight_h200();
  EXPECT_THAT(why_not(row, {}, topology), IsEmpty());
  topology.compute = 89;
  EXPECT_THAT(why_not(row, {}, topology), HasSubstr("9.0 or newer, and the oldest is 8.9"));
  topology.backend = Backend::kHost;
  EXPECT_THAT(why_not(row, {}, topology), IsEmpty());
}

TEST(Filter, SeveralNodes) {
  Topology topology = eight_h200();
  topology.node_of = {0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_THAT(reason("quick", topology),
              HasSubstr("needs access to the memory of all ranks, which are on 2 nodes"));
  EXPECT_THAT(reason("nccl", topology), IsEmpty());
  topology.backend = Backend::kHost;
  EXPECT_THAT(reason("quick", topology), HasSubstr("on 2 nodes"));
  topology.backend = Backend::kCuda;
  topology.between_nodes = peer_ways(Backend::kCuda);  // GPUs of one NVLink fabric
  EXPECT_THAT(reason("quick", topology), IsEmpty());
}

TEST(Filter, APairThatDoesNotReachIsNamed) {
  Topology topology = eight_h200();
  topology.limited = {{3, 1, Reach::kNone}};
  EXPECT_THAT(reason("quick", topology), HasSubstr("rank 3 cannot access rank 1"));
  EXPECT_THAT(reason("nccl", topology), IsEmpty());
  topology.limited = {{3, 1, Reach::kPeerMemory}};
  EXPECT_THAT(reason("quick", topology), IsEmpty());
}

TEST(Filter, CopyEnginesHaveAReachOfTheirOwn) {
  Algorithm row = row_of("quick");
  Topology topology = eight_h200();
  topology.limited = {{2, 6, Reach::kPeerMemory}};
  EXPECT_THAT(why_not(row, {}, topology), IsEmpty());
  row.program = [](Stages&, const KernelArgs&, std::size_t) {};
  EXPECT_THAT(why_not(row, {}, topology), HasSubstr("those of rank 2 cannot access rank 6"));
  topology.limited.clear();
  EXPECT_THAT(why_not(row, {}, topology), IsEmpty());
  topology.backend = Backend::kHost;  // whose threads copy
  topology.within_nodes = peer_ways(Backend::kHost);
  EXPECT_THAT(why_not(row, {}, topology), IsEmpty());
}

// Ranks on other nodes do not count, but where all share memory.
TEST(Filter, LimitsCountTheRanksOfANode) {
  Topology topology = eight_h200();
  topology.ranks = 16;
  topology.node_of = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  Algorithm row = row_of("quick");
  EXPECT_THAT(why_not(row, {}, topology), HasSubstr("on 2 nodes"));
  row.needs = kNeedsNothing;
  EXPECT_THAT(why_not(row, {}, topology), IsEmpty());
  topology.node_of[8] = 0;
  EXPECT_THAT(why_not(row, {}, topology), HasSubstr("at most 8 ranks per node, and a node has 9"));
  topology.node_of[8] = 1;
  topology.between_nodes = topology.within_nodes;
  EXPECT_THAT(why_not(row, {}, topology), HasSubstr("a node has 16"));
}

TEST(Filter, OneRankNeedsNoPeers) {
  Topology topology = eight_h200();
  topology.ranks = 1;
  topology.within_nodes = Reach::kNone;
  EXPECT_THAT(reason("quick", topology), IsEmpty());
}

TEST(Filter, DeterministicKeepsRankOrderOnly) {
  Request request;
  request.dtype = DataType::kBfloat16;
  request.deterministic = true;
  EXPECT_THAT(reason("quick", eight_h200(), request), IsEmpty());
  EXPECT_THAT(reason("ring", eight_h200(), request), HasSubstr("same_on_all_ranks"));
  EXPECT_THAT(reason("nccl", eight_h200(), request), HasSubstr("rank_order"));
}

TEST(Filter, DisabledLeavesNccl) {
  Request request;
  request.only_nccl = true;
  EXPECT_THAT(reason("nccl", eight_h200(), request), IsEmpty());
  EXPECT_THAT(reason("quick", eight_h200(), request), HasSubstr("TUTTI_DISABLE=1"));
}

// Pieces that begin between vectors would lie so on some ranks and not on others.
TEST(Filter, WindowsTakePiecesOfWholeVectors) {
  const Algorithm& row = **find_algorithm(Collective::kAllGather, "nccl_window");
  const auto why = [&](std::size_t bytes) {
    Request request;
    request.collective = Collective::kAllGather;
    request.count = bytes;
    request.dtype = DataType::kUint8;
    return why_not(row, request, eight_h200());
  };
  EXPECT_THAT(why(8 * 32), IsEmpty());
  EXPECT_THAT(why(8 * 24), HasSubstr("a multiple of 16 bytes per rank, and there are 24"));
}

// Each kind of windows is there or not for itself; and of the two, one has further needs.
TEST(Filter, NcclsCopyEnginesAreTakenByNameAlone) {
  const Algorithm& copies = **find_algorithm(Collective::kAllGather, "nccl_copy_engine");
  const Algorithm& kernels = **find_algorithm(Collective::kAllGather, "nccl_window");
  Request request;
  request.collective = Collective::kAllGather;
  request.count = 1024;
  Topology topology = eight_h200();
  EXPECT_THAT(why_not(copies, request, topology), IsEmpty());
  EXPECT_THAT(why_not_by_itself(copies, request, topology, MeasuredWith::kSymmetric),
              HasSubstr("only if requested by name"));
  EXPECT_THAT(why_not_by_itself(kernels, request, topology, MeasuredWith::kSymmetric), IsEmpty());
  request.sm_budget = 0;
  EXPECT_THAT(why_not_by_itself(copies, request, topology, MeasuredWith::kNothing), Not(IsEmpty()));
  request.sm_budget.reset();
  request.copies.none = "rank 1: too old";
  EXPECT_THAT(why_not(copies, request, topology), HasSubstr("rank 1: too old"));
  EXPECT_THAT(why_not(kernels, request, topology), IsEmpty());
  request.copies = {.ready = false};
  EXPECT_THAT(why_not(copies, request, topology), HasSubstr("inside a capture"));
  EXPECT_THAT(why_not(kernels, request, topology), IsEmpty());
  request.copies = {};
  request.default_stream = true;
  EXPECT_THAT(why_not(copies, request, topology), HasSubstr("default stream"));
  EXPECT_THAT(why_not(kernels, request, topology), IsEmpty());
  request.default_stream = false;
  topology.nccl_version = 22703;
  EXPECT_THAT(why_not(copies, request, topology), HasSubstr("2.28 or newer"));
  EXPECT_THAT(why_not(kernels, request, topology), IsEmpty());
}

// Threads that share a GPU; where ranks are processes, or do not share, any number is captured.
TEST(Filter, CapturesOfRanksOfOneProcessThatShareAGpu) {
  Topology topology = eight_h200();
  topology.one_process = true;
  Request request;
  request.capturing = true;
  const auto why = [&] { return reason("quick", topology, request); };
  EXPECT_THAT(why(), IsEmpty());
  topology.ranks_per_gpu = 3;
  EXPECT_THAT(why(), IsEmpty());
  topology.ranks_per_gpu = 4;
  EXPECT_THAT(why(), HasSubstr("more than 3 ranks of one process share a GPU, and 4 do"));
  topology.one_process = false;
  EXPECT_THAT(why(), IsEmpty());
  topology.one_process = true;
  request.capturing = false;
  EXPECT_THAT(why(), IsEmpty());
}

}  // namespace
}  // namespace tutti
