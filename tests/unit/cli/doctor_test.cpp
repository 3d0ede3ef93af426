#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "doctor/findings.hpp"
#include "fakes/fake_cuda.hpp"
#include "fakes/fake_optional_libraries.hpp"
#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

Facts healthy() {
  Facts facts;
  facts.machine.host = {
      .name = "node1", .boot_id = "x", .cores = 4, .shared_memory_bytes = 8 * GiB};
  Gpu gpu;
  gpu.name = "NVIDIA H200";
  gpu.posix_fd_handles = true;
  for (gpu.index = 0; gpu.index < 2; ++gpu.index) facts.machine.gpus.push_back(gpu);
  facts.machine.driver_version = "580.159";
  facts.machine.cuda_version = "13.0";
  facts.built_with_cuda = facts.device_nodes = true;
  facts.nccl_version = "2.29.7";
  facts.nccl_number = 22907;
  facts.transfers = {{.from = 0, .to = 1, .allowed = true, .intact = true, .gbps = 390},
                     {.from = 1, .to = 0, .allowed = true, .intact = true, .gbps = 385}};
  facts.shared_memory_free = 8 * GiB;
  facts.open_files = facts.open_files_most = 4096;
  facts.locked_memory = facts.processes = kUnlimited;
  return facts;
}

// The finding about `subject`; one that says so where there is none.
Finding find(const std::vector<Finding>& findings, const std::string& subject) {
  for (const Finding& finding : findings) {
    if (finding.subject == subject) return finding;
  }
  return {Severity::kOk, subject, "no such finding", ""};
}

std::size_t broken(const std::vector<Finding>& findings) {
  std::size_t count = 0;
  for (const Finding& finding : findings) {
    if (finding.severity != Severity::kFailure) continue;
    EXPECT_FALSE(finding.fix.empty()) << finding.subject;
    ++count;
  }
  return count;
}

TEST(Doctor, FindsNothingBrokenOnAHealthyMachine) {
  const auto findings = judge(healthy());
  EXPECT_EQ(broken(findings), 0u);
  EXPECT_EQ(find(findings, "peer access").text,
            "2 of 2 directed pairs moved data intact, 385 to 390 GB/s by copy engine");
}

TEST(Doctor, SaysWhatAnOldNcclCannotDo) {
  Facts facts = healthy();
  EXPECT_EQ(find(judge(facts), "NCCL").text, "2.29.7");
  facts.nccl_version = "2.28.3";
  facts.nccl_number = 22803;
  EXPECT_THAT(find(judge(facts), "NCCL").text, HasSubstr("nccl_window only if requested by name"));
  facts.nccl_version = "2.26.5";
  facts.nccl_number = 22605;
  EXPECT_THAT(find(judge(facts), "NCCL").text, HasSubstr("nccl_window needs 2.27 or newer"));
  EXPECT_EQ(broken(judge(facts)), 0u);
}

TEST(Doctor, IsContentWithoutAGpu) {
  Facts facts = healthy();
  facts.machine.gpus.clear();
  facts.transfers.clear();
  facts.device_nodes = facts.built_with_cuda = false;
  facts.why_no_nccl = "libnccl.so.2 not found";
  EXPECT_EQ(broken(judge(facts)), 0u);
}

TEST(Doctor, SeesAGpuThatCannotBeUsed) {
  Facts facts = healthy();
  facts.machine.gpus.clear();
  facts.transfers.clear();
  facts.why_no_cuda = "libcuda.so.1 cannot be loaded";
  EXPECT_EQ(broken(judge(facts)), 1u);
  EXPECT_THAT(find(judge(facts), "driver").text, HasSubstr("libcuda.so.1 cannot be loaded"));
  facts.built_with_cuda = false;
  EXPECT_THAT(find(judge(facts), "driver").fix, HasSubstr("cuda-release"));
}

TEST(Doctor, NamesTheDirectedPairThatFails) {
  Facts facts = healthy();
  facts.transfers[1].intact = false;
  facts.transfers[1].why = "data is lost";
  EXPECT_EQ(broken(judge(facts)), 1u);
  EXPECT_EQ(find(judge(facts), "peer 1 to 0").text, "data is lost");
  EXPECT_THAT(find(judge(facts), "peer 1 to 0").fix, HasSubstr("ACS"));
}

TEST(Doctor, JudgesLimits) {
  Facts facts = healthy();
  facts.open_files = 100;
  EXPECT_EQ(find(judge(facts), "open files").severity, Severity::kFailure);
  facts.open_files = 512;
  EXPECT_EQ(find(judge(facts), "open files").severity, Severity::kWarning);
  facts.locked_memory = 64 * KiB;
  EXPECT_THAT(find(judge(facts), "locked memory").text, HasSubstr("0.1 MiB; only networks"));
  facts.why_no_shared_memory = "memfd_create: not permitted";
  EXPECT_EQ(find(judge(facts), "shared memory").severity, Severity::kFailure);
  facts.shared_memory_free = 64 * MiB;
  EXPECT_THAT(find(judge(facts), "/dev/shm").fix, HasSubstr("--shm-size"));
}

TEST(Doctor, SeesFoldersThatCannotBeWritten) {
  Facts facts = healthy();
  facts.runtime_folder = facts.trace_folder = "/tmp";
  EXPECT_EQ(broken(judge(facts)), 0u);
  EXPECT_THAT(find(judge(facts), "runtime folder").text, HasSubstr("meet in /tmp"));
  facts.why_shm_not_writable = "nothing can be made in /dev/shm: Read-only file system";
  facts.why_no_runtime_folder = "nothing can be made in /tmp: Read-only file system";
  facts.why_no_trace_folder = facts.why_no_runtime_folder;
  EXPECT_EQ(broken(judge(facts)), 2u);
  for (const char* subject : {"/dev/shm", "runtime folder", "trace folder"}) {
    EXPECT_THAT(find(judge(facts), subject).text, HasSubstr("Read-only")) << subject;
    EXPECT_FALSE(find(judge(facts), subject).fix.empty()) << subject;
  }
}

TEST(Doctor, TriesFolders) {
  const ScratchFolder folder;
  EXPECT_EQ(why_not_writable(folder.path()), "");
  EXPECT_EQ(folder.files(), 0u);
  for (const char* other : {"/proc", "/no/such/folder", "/dev/null"}) {  // also for root
    EXPECT_THAT(why_not_writable(other), HasSubstr(std::string("nothing can be made in ") + other));
  }
}

TEST(Doctor, EscapesWhatOthersNamed) {
  const std::vector<Finding> findings = {{Severity::kFailure, "a", "b\x1b[2J", "c\nd", "x"}};
  EXPECT_EQ(print_findings(findings, {}, false),
            "x\n  fail  a  b\\x1b[2J\n           fix: c\\nd\n\n1 failure, 0 warnings\n");
}

TEST(Doctor, SaysWhetherMulticastIsUsed) {
  Facts facts = healthy();
  facts.machine.gpus[1].multicast = true;
  EXPECT_EQ(find(judge(facts), "multicast").text, "present, and may be used");
  facts.why_no_multicast = "this build has none";
  EXPECT_EQ(find(judge(facts), "multicast").text, "present, not used: this build has none");
}

TEST(Doctor, NamesOptionalLibrariesAndMissesNone) {
  FakeOptionalLibraries libraries;
  libraries.cublas_lt_answer = FoundLibrary{"13.0.2", "/lib/libcublasLt.so.13"};
  libraries.ucx_answer = Status(StatusCode::kUnavailable, "not found (no such file)");
  Facts facts = healthy();
  look_for_libraries(libraries, facts);
  const auto findings = judge(facts);
  EXPECT_EQ(broken(findings), 0u);
  EXPECT_EQ(find(findings, "cuBLASLt").severity, Severity::kOk);
  EXPECT_THAT(find(findings, "cuBLASLt").text,
              HasSubstr("13.0.2, /lib/libcublasLt.so.13; optional"));
  EXPECT_EQ(find(findings, "UCX").severity, Severity::kOk);
  EXPECT_THAT(find(findings, "UCX").text, HasSubstr("not found (no such file); optional, for net"));
}

TEST(Doctor, SaysWhatUcxHasAndWhatItWouldUse) {
  Facts facts = healthy();
  facts.ucx = FoundLibrary{"1.13.1", "/lib/libucp.so.0", {"cma", "ib"}};
  facts.network = std::string("tcp over eth0");
  EXPECT_THAT(find(judge(facts), "UCX").text, HasSubstr("1.13.1, /lib/libucp.so.0 with cma, ib;"));
  EXPECT_THAT(find(judge(facts), "UCX").text, HasSubstr("has no CUDA"));
  facts.ucx->modules.emplace_back("cuda");
  EXPECT_THAT(find(judge(facts), "UCX").text, HasSubstr("has CUDA (TUTTI_NETWORK_DIRECT=1)"));
  EXPECT_EQ(find(judge(facts), "network").text, "tcp over eth0");
  facts.network = Status(StatusCode::kPermission, "a public address");
  EXPECT_EQ(find(judge(facts), "network").severity, Severity::kOk);
  EXPECT_EQ(find(judge(facts), "network").text, "a public address");
}

TEST(Doctor, PrintsEachGroupOnceWithItsFixes) {
  const std::vector<Finding> findings = {{Severity::kOk, "a", "fine", "", "one"},
                                         {Severity::kFailure, "bcd", "bad", "repair it", "one"},
                                         {Severity::kWarning, "e", "so so", "tune it", "two"}};
  EXPECT_EQ(print_findings(findings, {}, false),
            "one\n  ok    a    fine\n  fail  bcd  bad\n             fix: repair it\n"
            "\ntwo\n  warn  e    so so\n             fix: tune it\n"
            "\n1 failure, 1 warning\n");
  EXPECT_THAT(print_findings(findings, {}, true), HasSubstr("\x1b[31mfail\x1b[0m  bcd"));
  EXPECT_THAT(print_findings(findings, {}, true), HasSubstr("\x1b[33mwarn\x1b[0m  e"));
  const auto json = nlohmann::json::parse(print_findings_json(findings, healthy()));
  EXPECT_EQ(json.at("findings").at(1).at("fix"), "repair it");
  EXPECT_EQ(json.at("findings").at(1).at("group"), "one");
  EXPECT_EQ(json.at("transfers").size(), 2u);
}

TEST(Doctor, HasAllGroupsAndAFixForWhatIsNotRight) {
  Facts facts = healthy();
  facts.why_no_nccl = facts.why_no_nvml = "not found";
  facts.open_files = 100;
  facts.transfers.push_back({.from = kHostEnd, .to = 0, .allowed = true, .why = "no memory"});
  std::vector<std::string_view> groups;
  for (const Finding& finding : judge(facts)) {
    if (groups.empty() || groups.back() != finding.group) groups.push_back(finding.group);
    EXPECT_EQ(finding.fix.empty(), finding.severity == Severity::kOk) << finding.subject;
    EXPECT_EQ(finding.fix.find('\n'), std::string::npos) << finding.subject;
  }
  EXPECT_EQ(groups, (std::vector<std::string_view>{"machine", "GPUs", "libraries", "limits"}));
  EXPECT_EQ(find(judge(facts), "copy host to 0").severity, Severity::kFailure);
}

TEST(Doctor, SaysWhatWasSkipped) {
  Facts facts = healthy();
  facts.transfers[1] = {.from = 1, .to = 0, .skipped = true};
  EXPECT_EQ(broken(judge(facts)), 0u);
  EXPECT_EQ(find(judge(facts), "skipped").text, "1 of 2 transfers: the time for them was up");
  EXPECT_THAT(find(judge(facts), "peer access").text, HasSubstr("1 of 2 directed pairs"));
}

constexpr std::chrono::minutes kEnoughTime{10};

TEST(Transfers, MoveDataBetweenTheHostAndAllGpus) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(3));
  const auto transfers = try_transfers(cuda, 3, kEnoughTime);
  ASSERT_EQ(transfers.size(), 6u + 6u);
  for (const Transfer& t : transfers) {
    EXPECT_TRUE(t.allowed && t.intact && !t.skipped) << t.why;
    EXPECT_GT(t.gbps, 0);
    EXPECT_GT(t.latency_us, 0);
  }
  EXPECT_EQ(cuda.open(), FakeCudaOpen());
}

TEST(Transfers, OfOneGpuAreThoseWithTheHost) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  const auto transfers = try_transfers(cuda, 1, kEnoughTime);
  ASSERT_EQ(transfers.size(), 2u);
  EXPECT_EQ(transfers[0].from, kHostEnd);
  EXPECT_EQ(transfers[1].to, kHostEnd);
}

TEST(Transfers, AreNotBegunWhenTheirTimeIsUp) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(2));
  for (const Transfer& t : try_transfers(cuda, 2, std::chrono::milliseconds(0))) {
    EXPECT_TRUE(t.skipped && !t.intact);
  }
  EXPECT_EQ(cuda.calls("allocate"), 0);
}

TEST(Transfers, NoticeDataThatIsLostAndAccessThatIsRefused) {
  const auto world = std::make_shared<FakeCudaWorld>(3);
  world->lossy = {{0, 2}};
  world->without_peer_access = {{1, 0}};
  FakeCuda cuda(world);
  for (const Transfer& t : try_transfers(cuda, 3, kEnoughTime)) {
    const bool lossy = t.from == 0 && t.to == 2, refused = t.from == 1 && t.to == 0;
    EXPECT_EQ(t.intact, !lossy && !refused) << t.from << " to " << t.to << ": " << t.why;
    EXPECT_EQ(t.why.find("data is lost") != std::string::npos, lossy) << t.why;
    EXPECT_EQ(t.why == "the driver allows no peer access", refused) << t.why;
  }
}

TEST(Transfers, ArePrintedAsMatrices) {
  const auto transfer = [](int from, int to, double gbps, double us) {
    return Transfer{
        .from = from, .to = to, .allowed = true, .intact = true, .gbps = gbps, .latency_us = us};
  };
  std::vector<Transfer> transfers = {
      transfer(kHostEnd, 0, 55.25, 1.5), transfer(0, kHostEnd, 54, 1.75),
      transfer(kHostEnd, 1, 55, 1.5),    {.from = 1, .to = kHostEnd, .skipped = true},
      transfer(0, 1, 390.04, 2.125),     {.from = 1, .to = 0, .allowed = true, .why = "lost"}};
  EXPECT_EQ(print_transfers(transfers),
            "bandwidth of copies of 64M, one copy engine, GB/s\n"
            "from \\ to       GPU 0    GPU 1     host\n"
            "GPU 0               -    390.0     54.0\n"
            "GPU 1          failed        -  skipped\n"
            "host             55.2     55.0        -\n"
            "\n"
            "latency of a copy of 4 bytes in a CUDA graph, us\n"
            "from \\ to       GPU 0    GPU 1     host\n"
            "GPU 0               -     2.12     1.75\n"
            "GPU 1          failed        -  skipped\n"
            "host             1.50     1.50        -\n");
  EXPECT_EQ(print_transfers({}), "");
}

}  // namespace
}  // namespace tutti::cli
