// Writes the seeds that are made by the code itself: make_fuzz_seeds CORPUS. Run it when the layout
// of a message changes. Texts that people write are kept by hand.
#include <signal.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include "bench/measurement.hpp"
#include "bootstrap/failure_notice.hpp"
#include "bootstrap/frame.hpp"
#include "bootstrap/handshake.hpp"
#include "executors/network/message.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/scripted_socket.hpp"
#include "group/agreement.hpp"
#include "group/recorder/page.hpp"
#include "matmul/arrival_trace.hpp"
#include "memory/heap_messages.hpp"
#include "planning/table.hpp"
#include "run/wire.hpp"
#include "topology/topology.hpp"
#include "unit/cli/some_record.hpp"

namespace tutti::fuzz {
namespace {

class Corpus {
 public:
  explicit Corpus(std::filesystem::path root) : root_(std::move(root)) {}

  // `choices` are the bytes by which a target is told what to do with the rest.
  void write(const std::string& name, ByteView bytes, std::initializer_list<int> choices = {}) {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream file(root_ / name, std::ios::binary);
    for (const int choice : choices) file.put(static_cast<char>(choice));
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  void write(const std::string& name, std::string_view text) { write(name, view_of(text)); }

 private:
  std::filesystem::path root_;
};

Message message(FrameKind kind, std::uint64_t sequence, const Bytes& payload) {
  return {kind, 7, sequence, std::make_shared<const Bytes>(payload), {}};
}

Bytes written(std::vector<Message> messages) {
  FrameWriter writer;
  for (Message& one : messages) writer.add(std::move(one));
  ScriptedSocket socket({}, SIZE_MAX);
  must_hold(writer.flush(socket, 0).is_ok(), "frames can be written");
  return socket.said();
}

void write_frames(Corpus& corpus) {
  const Bytes hello(24, std::byte{'h'});
  const Bytes failure = encode_failure({2, StatusCode::kPeerFailed, "rank 2 is gone"});
  std::vector<Message> calls, descriptors;
  calls.push_back(message(FrameKind::kGather, 1, hello));
  calls.push_back(message(FrameKind::kGather, 2, {}));
  calls.push_back(message(FrameKind::kLeave, 0, {}));
  corpus.write("frames/two_calls_and_a_leave", written(std::move(calls)), {30, 0});
  descriptors.push_back(message(FrameKind::kDescriptors, 1, {}));
  descriptors.back().descriptors.resize(2);
  corpus.write("frames/descriptors", written(std::move(descriptors)), {255, 2});
  std::vector<Message> end;
  end.push_back(message(FrameKind::kFailure, 0, failure));
  end.push_back(message(FrameKind::kGoodbye, 0, {}));
  corpus.write("frames/failure_and_goodbye", written(std::move(end)), {1, 0});
  std::vector<Message> many;
  for (int k = 1; k <= 6; ++k) many.push_back(message(FrameKind::kGather, k, {}));
  corpus.write("frames/runs_ahead", written(std::move(many)), {255, 0});
}

// What each end says, if nobody checks proofs.
void write_handshakes(Corpus& corpus) {
  HandshakeTerms low, high;
  low.rank = 0;
  high.rank = 1;
  low.size = high.size = 4;
  low.check_proofs = high.check_proofs = false;
  Handshake initiator = Handshake::initiator(high, 0);
  ScriptedSocket first({}, SIZE_MAX);
  static_cast<void>(initiator.step(first, 0));
  const Bytes hello_of_1 = first.said();
  // The acceptor in the target is rank 1, so rank 2 calls it.
  HandshakeTerms third = high;
  third.rank = 2;
  Handshake caller = Handshake::initiator(third, 1);
  ScriptedSocket second({}, SIZE_MAX);
  static_cast<void>(caller.step(second, 0));
  Bytes initiator_says = second.said();
  initiator_says.resize(initiator_says.size() + sizeof(Digest), std::byte{0x11});
  corpus.write("handshake/to_an_acceptor", initiator_says, {0xfc});
  corpus.write("handshake/to_a_careless_acceptor", initiator_says, {0xfe});

  Handshake acceptor = Handshake::acceptor(low, [](const Handshake::Claim& claim) {
    return Verdict{VerdictCode::kWelcome, claim.size};
  });
  Bytes words = hello_of_1;
  words.resize(words.size() + sizeof(Digest), std::byte{0x22});
  ScriptedSocket third_socket(words, SIZE_MAX);
  static_cast<void>(acceptor.step(third_socket, 0));
  corpus.write("handshake/to_an_initiator", third_socket.said(), {0xfd});
  corpus.write("handshake/to_a_careless_initiator", third_socket.said(), {0xff});
}

void write_heap_messages(Corpus& corpus) {
  HeapMessage plan{{HeapCall::Kind::kAllocate, 3, 1, {100000}}, {}, 0, 4096, {}, {}};
  plan.free_blocks = {{1, 4096}, {5, 1 << 20}};
  corpus.write("heap_messages/plan", encode(plan));
  HeapMessage offers{{HeapCall::Kind::kRegister, 4, 2, {100, 200}}, {}, 1, 1, {}, {}};
  offers.offers = {Offer::staged("the range is empty"), Offer{}};
  offers.offers[1].how = Offer::How::kVirtual;
  offers.offers[1].descriptor = 0;
  offers.offers[1].allocation_bytes = 4096;
  corpus.write("heap_messages/offers", encode(offers));
  HeapMessage failed = plan;
  failed.status = Status(StatusCode::kResourceExhausted, "no memory");
  corpus.write("heap_messages/failed", encode(failed));
  const std::vector<Status> outcomes = {Status(), Status(StatusCode::kCuda, "x"), Status()};
  corpus.write("heap_messages/outcomes", encode_outcomes(outcomes));
  corpus.write("heap_messages/failure",
               encode_failure({3, StatusCode::kTimeout, "rank 3 did not come"}));
  corpus.write("heap_messages/settings",
               encode(std::vector<AgreedValue>{{"TUTTI_DISABLE", "0", ""},
                                               {"TUTTI_TUNING_FILE", "12ab", "/a.json"}}));
}

// The beginning of a page: what comes after its first records is empty.
// A header; and messages of an operation to an engine, as network_messages.cpp cuts them: kind and
// whether an operation begins, sequence, partition, step, chunk, bytes.
void write_network_messages(Corpus& corpus) {
  NetworkMessage message;
  message.group = 99;
  message.from = 1;
  message.sequence = 3;
  message.signature = 0x1234;
  corpus.write("network_messages/header", view_of(to_header(message)), {0});
  corpus.write("network_messages/early", {},
               {1, 129, 1, 0, 0, 0, 8, 0, 1, 1, 0, 0, 1, 8, 0, 2, 1, 1, 0, 0, 0, 0});
  corpus.write("network_messages/all", {},
               {1, 131, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 8, 0, 1, 1, 0, 0, 1, 8, 0,
                1, 1,   0, 1, 0, 8, 0, 1, 1, 0, 1, 1, 8, 0, 2, 1, 1, 0, 0, 0, 0});
}

void write_pages(Corpus& corpus) {
  PageHeader header{};
  header.magic = kPageMagic;
  header.page_version = kPageVersion;
  header.header_bytes = sizeof(PageHeader);
  header.record_bytes = sizeof(PageRecord);
  header.records = kPageRecords;
  header.rank = 1;
  header.ranks = 4;
  header.device = -1;
  header.opened_ns = 1000;
  header.waits_for = 0b1000;
  Bytes page = to_bytes(view_of(header));
  corpus.write("recorder_page/idle", page);
  for (std::uint64_t slot = 0; slot < 3; ++slot) {
    PageRecord record{};
    record.version = 2;
    record.sequence = slot == 0 ? kPageRecords : slot;
    record.count = 1024;
    record.bytes = 4096;
    record.started_ns = 2000 + slot;
    record.state = static_cast<std::uint32_t>(OperationState::kRunning);
    std::string_view("all_reduce/one_shot").copy(record.row.data(), record.row.size() - 1);
    const ByteView bytes = view_of(record);
    page.insert(page.end(), bytes.begin(), bytes.end());
  }
  corpus.write("recorder_page/three_operations", page);
  header.failed_ns = 3000;
  header.failed_code = static_cast<std::uint32_t>(StatusCode::kTimeout);
  std::string_view("rank 3 did not come").copy(header.failed_text.data(), 100);
  corpus.write("recorder_page/failed", view_of(header));
}

void write_results(Corpus& corpus) {
  cli::Record record = cli::some_record();
  record.rows.resize(2);
  corpus.write("results/record", cli::to_json_text(record));
  cli::Measurement measured;
  measured.algorithm = "two_shot";
  measured.plan = {"all_reduce/two_shot", 4, 256, 4096, PlanSource::kShipped};
  measured.samples_us = {1.25, 3.5};
  measured.wrong = 7;
  corpus.write("results/measurement", cli::to_json_text(measured));
  record.rows = {cli::some_overlap_row(cli::Phase::kMatmul, 1600),
                 cli::some_overlap_row(cli::Phase::kOverlap, 1800)};
  corpus.write("results/overlap_record", cli::to_json_text(record));
  record.rows = {cli::some_matmul_row("own_matmul", 4096, 0.98),
                 cli::some_matmul_row("cublaslt_matmul", 4096, 1)};
  corpus.write("results/matmul_record", cli::to_json_text(record));
  cli::OverlapMeasurement overlap;
  overlap.phase = cli::Phase::kOverlap;
  overlap.algorithm = "copy_engine";
  overlap.plan.algorithm = "all_gather/copy_engine";
  overlap.library = "cuBLASLt 13.0.2";
  overlap.samples_us = {1800, 1801.5};
  overlap.matmul_us = {1650, 1700};
  overlap.gather_us = {700, 650.25};
  overlap.megahertz = {1980, 1755.5};
  overlap.wrong = 0;
  corpus.write("results/overlap", cli::to_json_text(overlap));
  corpus.write("results/skipped", cli::to_json_text(cli::Skipped{"nccl", "not found"}));
  corpus.write("results/failure", cli::to_json_text(cli::Failure{StatusCode::kTimeout, "late"}));
  corpus.write("results/trying", cli::to_json_text(cli::Trying{2, "one_shot"}));
  corpus.write("results/dropped", cli::to_json_text(cli::Dropped{2, "one_shot", "wrong"}));
  cli::Tuned tuned;
  tuned.size = 2;
  tuned.best.algorithm = "two_shot";
  tuned.best.blocks = 16;
  tuned.best.threads = 256;
  tuned.time_us = 4.5;
  tuned.samples = 50;
  tuned.runner_up = "nccl";
  tuned.runner_up_us = 6.25;
  corpus.write("results/tuned", cli::to_json_text(tuned));
  cli::TunedAllGatherMatmul pipeline;
  pipeline.best.way = {AllGatherMatmulAlgorithm::kPipelinedRing, pipelines::Protocol::kPut, 2, 0};
  pipeline.best.time_us = 7.5;
  pipeline.best.unfused_us = 9.25;
  pipeline.best.samples = 30;
  corpus.write("results/tuned_all_gather_matmul", cli::to_json_text(pipeline));
  corpus.write("results/alive", cli::to_json_text(cli::Alive{}));
  const nlohmann::json topology = Topology{};
  corpus.write("results/topology", topology.dump());
  Machine machine;
  machine.gpus.resize(2);
  machine.peer_access.assign(2, {true, false});
  const nlohmann::json value = machine;
  corpus.write("results/machine", value.dump());
}

void write_tables(Corpus& corpus) {
  TuningEntry host, cuda;
  host.backend = Backend::kHost;
  host.ranks = cuda.ranks = 2;
  host.max_bytes = cuda.max_bytes = 65536;
  host.algorithm = cuda.algorithm = "all_reduce/one_shot";
  host.date = cuda.date = "2026-11-21";
  host.samples = cuda.samples = 50;
  cuda.gpu = "NVIDIA H200";
  cuda.driver = "580.159";
  cuda.runner_up = "all_reduce/two_shot";
  cuda.runner_up_us = 9.5;
  corpus.write("tuning_table/host", write_tuning_json({{host}}));
  corpus.write("tuning_table/both", write_tuning_json({{host, cuda}}));
  const AllGatherMatmulEntry tiles{
      .gpu = "NVIDIA H200",
      .ranks = 2,
      .element_bytes = 2,
      .size = {8192, 3584, 8192},
      .way = {AllGatherMatmulAlgorithm::kPipelinedTiles, pipelines::Protocol::kPut, 2, 4},
      .time_us = 700,
      .unfused_us = 956,
      .runner_up = AllGatherMatmulAlgorithm::kFused,
      .runner_up_us = 708,
      .date = "2026-11-26",
      .driver = "580.159",
      .samples = 30};
  corpus.write("tuning_table/all_gather_matmul", write_tuning_json({{cuda}, {tiles}}));
  corpus.write("tuning_table/empty", write_tuning_json({}));
}

void write_traces(Corpus& corpus) {
  const ArrivalPlan plan{.shards = 3, .chunks = 2, .own = 1};
  auto trace = modelled_arrival(plan, {.m = 10, .bytes_per_row = 8}, {.straggler = 2}, "a machine");
  must_hold(trace.is_ok(), "a trace can be modelled");
  corpus.write("arrival_trace/modelled", to_json_text(*trace));
  trace->model.reset();
  corpus.write("arrival_trace/measured", to_json_text(*trace));
}

void write_agent_wire(Corpus& corpus) {
  using namespace tutti::cli;
  corpus.write(
      "agent_wire/start",
      encode(StartRanks{
          .first = {.rank = 2, .ranks = 6, .local_ranks = 4, .master = "node0", .port = 4000},
          .settings = {"A=1", "TUTTI_DEBUG=INFO"},
          .folder = "/tmp",
          .program = "program",
          .arguments = {"-x", ""},
          .grace_seconds = 5}));
  corpus.write("agent_wire/signal", encode(SignalRanks{SIGTERM}));
  corpus.write("agent_wire/input", encode(RankInput{"input"}));
  corpus.write("agent_wire/ready", encode(AgentReady{4000, 4001}));
  corpus.write("agent_wire/failed", encode(AgentFailed{"why"}));
  corpus.write("agent_wire/printed", encode(RankPrinted{1, 1, "text\n"}));
  corpus.write("agent_wire/ended", encode(RankEnded{1, 256}));
}

}  // namespace
}  // namespace tutti::fuzz

int main(int argc, char** argv) {
  using namespace tutti::fuzz;
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
    return 2;
  }
  Corpus corpus(argv[1]);
  write_frames(corpus);
  write_handshakes(corpus);
  write_heap_messages(corpus);
  write_network_messages(corpus);
  write_pages(corpus);
  write_results(corpus);
  write_tables(corpus);
  write_traces(corpus);
  write_agent_wire(corpus);
  return 0;
}
