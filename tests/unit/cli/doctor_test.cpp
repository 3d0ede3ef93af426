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
  return {Severity::kGood, subject, "no such finding", ""};
}

std::size_t broken(const std::vector<Finding>& findings) {
  std::size_t count = 0;
  for (const Finding& finding : findings) {
    if (finding.severity != Severity::kBroken) continue;
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
  EXPECT_THAT(find(judge(facts), "NCCL").text, HasSubstr("nccl_window by its name alone"));
  facts.nccl_version = "2.26.5";
  facts.nccl_number = 22605;
  EXPECT_THAT(find(judge(facts), "NCCL").text, HasSubstr("nccl_window takes 2.27 or newer"));
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
  EXPECT_EQ(find(judge(facts), "open files").severity, Severity::kBroken);
  facts.open_files = 512;
  EXPECT_EQ(find(judge(facts), "open files").severity, Severity::kNote);
  facts.locked_memory = 64 * KiB;
  EXPECT_EQ(find(judge(facts), "locked memory").severity, Severity::kNote);
  facts.why_no_shared_memory = "memfd_create: not permitted";
  EXPECT_EQ(find(judge(facts), "shared memory").severity, Severity::kBroken);
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
  const std::vector<Finding> findings = {{Severity::kBroken, "a", "b\x1b[2J", "c\nd"}};
  EXPECT_EQ(print_findings(findings, false), "BROKEN  a  b\\x1b[2J\n           -> c\\nd\n");
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
  EXPECT_EQ(find(findings, "cuBLASLt").severity, Severity::kGood);
  EXPECT_THAT(find(findings, "cuBLASLt").text, HasSubstr("13.0.2, /lib/libcublasLt.so.13; for "));
  EXPECT_EQ(find(findings, "UCX").severity, Severity::kNote);
  EXPECT_THAT(find(findings, "UCX").text, HasSubstr("not found (no such file); for networks"));
}

TEST(Doctor, PrintsRedLinesWithTheirFix) {
  const std::vector<Finding> findings = {{Severity::kGood, "a", "fine", ""},
                                         {Severity::kBroken, "bcd", "bad", "mend it"}};
  EXPECT_EQ(print_findings(findings, false),
            "ok      a    fine\nBROKEN  bcd  bad\n             -> mend it\n");
  EXPECT_THAT(print_findings(findings, true), HasSubstr("\x1b[31mBROKEN"));
  const auto json = nlohmann::json::parse(print_findings_json(findings, healthy()));
  EXPECT_EQ(json.at("findings").at(1).at("fix"), "mend it");
  EXPECT_EQ(json.at("transfers").size(), 2u);
}

TEST(Transfers, MoveDataBetweenEveryOrderedPair) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(3));
  const auto transfers = try_transfers(cuda, 3);
  ASSERT_EQ(transfers.size(), 6u);
  for (const PeerTransfer& t : transfers) EXPECT_TRUE(t.allowed && t.intact) << t.why;
}

TEST(Transfers, NoticeDataThatIsLostAndAccessThatIsRefused) {
  const auto world = std::make_shared<FakeCudaWorld>(3);
  world->lossy = {{0, 2}};
  world->without_peer_access = {{1, 0}};
  FakeCuda cuda(world);
  for (const PeerTransfer& t : try_transfers(cuda, 3)) {
    const bool lossy = t.from == 0 && t.to == 2, refused = t.from == 1 && t.to == 0;
    EXPECT_EQ(t.intact, !lossy && !refused) << t.from << " to " << t.to << ": " << t.why;
    EXPECT_EQ(t.why.find("data is lost") != std::string::npos, lossy) << t.why;
    EXPECT_EQ(t.why == "the driver allows no peer access", refused) << t.why;
  }
}

}  // namespace
}  // namespace tutti::cli
