// Proves by real transfers that peers reach each other's memory. A driver can promise peer access
// that an IOMMU or a switch then does not keep: stores vanish without an error.
//
//   1. gather   who uses which GPU, a fresh random token of each rank, and what is known already
//   2. write    rank w puts pattern(w, r) into its slot of every rank r's part; gather
//   3. read     rank r looks at what arrived, and fetches what it wrote elsewhere
//   4. gather   all verdicts: the first directed pair that failed is named everywhere
//   5. clear    the part is zero again, as it was allocated; gather
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <random>
#include <tuple>
#include <utility>

#include "base/log.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "bootstrap/bootstrap.hpp"
#include "drivers/cuda.hpp"
#include "memory/device_scope.hpp"
#include "memory/symmetric_heap.hpp"
#include "memory/wire.hpp"

namespace tutti {
namespace {

constexpr std::size_t kScratchBytes = 4 * KiB;
constexpr std::size_t kMaxSlotBytes = 256;
constexpr std::size_t kSlotAlignment = 16;

using Uuid = std::array<std::uint8_t, 16>;

// What has been found out about one directed pair.
enum class Verdict : std::uint8_t { kUnknown, kOk, kFailed };

// Of this process, for as long as it lives: links do not change under it.
class VerdictCache {
 public:
  static VerdictCache& process() {
    static VerdictCache cache;
    return cache;
  }
  Verdict get(const CudaDriver& cuda, const Uuid& from, const Uuid& to) {
    const std::lock_guard lock(mutex_);
    const auto found = verdicts_.find({&cuda, from, to});
    return found == verdicts_.end() ? Verdict::kUnknown : found->second;
  }
  void set(const CudaDriver& cuda, const Uuid& from, const Uuid& to, Verdict verdict) {
    const std::lock_guard lock(mutex_);
    verdicts_[{&cuda, from, to}] = verdict;
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<const CudaDriver*, Uuid, Uuid>, Verdict> verdicts_;
};

struct Member {
  Uuid uuid{};
  std::string pci_bus_id;
  std::uint64_t token = 0;
  Status status;
};

// What rank r says of data that goes to it (`arrived`), and of data that it fetches (`fetched`).
struct Report {
  std::vector<Verdict> arrived;  // per writer
  std::vector<Verdict> fetched;  // per owner
  Status status;                 // the first call that failed
};

Bytes encode(const Member& member) {
  WireWriter out;
  out.put(member.uuid);
  out.put_text(member.pci_bus_id);
  out.put(member.token);
  out.put_status(member.status);
  return out.take();
}

Status no_part_of_the_check(const std::string& sender) {
  return {
      StatusCode::kMismatch,
      fmt::format("{} sent something else than its part of the peer access check: all ranks must "
                  "make the same calls in the same order",
                  sender)};
}

Result<std::vector<Member>> decode_members(const std::vector<Bytes>& per_rank,
                                           const RankNames& names) {
  std::vector<Member> members;
  for (const Bytes& bytes : per_rank) {
    WireReader in(bytes);
    Member member;
    member.uuid = in.get<Uuid>();
    member.pci_bus_id = in.get_text();
    member.token = in.get<std::uint64_t>();
    member.status = in.get_status();
    if (!in.complete()) return no_part_of_the_check(names.of(members.size()));
    members.push_back(std::move(member));
  }
  return members;
}

Bytes encode(const Report& report) {
  WireWriter out;
  for (const Verdict verdict : report.arrived) out.put(verdict);
  for (const Verdict verdict : report.fetched) out.put(verdict);
  out.put_status(report.status);
  return out.take();
}

Result<std::vector<Report>> decode_reports(const std::vector<Bytes>& per_rank,
                                           const RankNames& names) {
  std::vector<Report> reports;
  for (const Bytes& bytes : per_rank) {
    WireReader in(bytes);
    Report report;
    for (auto* verdicts : {&report.arrived, &report.fetched}) {
      for (std::size_t peer = 0; peer < per_rank.size(); ++peer)
        verdicts->push_back(in.get_enum(Verdict::kFailed));
    }
    report.status = in.get_status();
    if (!in.complete()) return no_part_of_the_check(names.of(reports.size()));
    reports.push_back(std::move(report));
  }
  return reports;
}

// The bytes that `writer` puts into `reader`'s part: no two pairs and no two runs share them.
Bytes pattern(const Member& member, std::size_t writer, std::size_t reader, std::size_t bytes) {
  std::mt19937_64 words(member.token ^ (writer << 32) ^ (reader + 1));
  Bytes text(bytes);
  for (std::byte& value : text) value = static_cast<std::byte>(words() >> 56);
  return text;
}

class PeerCheck {
 public:
  PeerCheck(Bootstrap& bootstrap, CudaDriver& cuda, const SymmetricSegment& segment,
            Deadline deadline)
      : bootstrap_(bootstrap),
        cuda_(cuda),
        segment_(segment),
        deadline_(deadline),
        rank_(static_cast<std::size_t>(bootstrap.rank())),
        size_(static_cast<std::size_t>(bootstrap.size())),
        // Half of the slots take what others write, half hold what is on its way.
        slot_bytes_(std::min(kMaxSlotBytes,
                             kScratchBytes / (2 * size_) / kSlotAlignment * kSlotAlignment)) {}

  Status run();
  const RankPairs& lost() const { return lost_; }  // what run() has found

 private:
  Member introduce();
  Report known() const;
  Result<std::vector<Report>> transfer();
  Status write_all();
  Status read_all(Report& report);
  Result<Verdict> compare(const std::byte* device_bytes, std::size_t writer, std::size_t reader);
  Result<std::vector<Report>> gather(const Report& mine);
  Status conclude(const std::vector<Report>& reports);
  std::string pair_text(int from, int to) const;

  // Of `owner`'s part: where `writer`'s data arrives, and where the owner keeps data in transit.
  std::byte* inbound(std::size_t owner, std::size_t writer) const {
    return segment_.at[owner] + writer * slot_bytes_;
  }
  std::byte* transit(std::size_t peer) const {
    return segment_.at[rank_] + (size_ + peer) * slot_bytes_;
  }

  Bootstrap& bootstrap_;
  CudaDriver& cuda_;
  const SymmetricSegment& segment_;
  const Deadline deadline_;
  const std::size_t rank_;
  const std::size_t size_;
  const std::size_t slot_bytes_;
  int device_ = -1;
  std::vector<Member> members_;
  RankPairs lost_;
};

Status PeerCheck::run() {
  TUTTI_ASSIGN(const auto introduced, bootstrap_.all_gather(encode(introduce()), deadline_));
  TUTTI_ASSIGN(members_, decode_members(introduced, bootstrap_.names()));
  for (std::size_t rank = 0; rank < size_; ++rank) {
    if (!members_[rank].status.is_ok())
      return members_[rank].status.with_context(
          fmt::format("peer access check: {}", bootstrap_.names().of(rank)));
  }
  TUTTI_ASSIGN(auto reports, gather(known()));
  const bool all_known = std::all_of(reports.begin(), reports.end(), [](const Report& report) {
    return std::count(report.arrived.begin(), report.arrived.end(), Verdict::kUnknown) == 0;
  });
  if (!all_known) {
    TUTTI_ASSIGN(reports, transfer());
  }
  return conclude(reports);
}

Result<std::vector<Report>> PeerCheck::transfer() {
  const DeviceScope scope(cuda_, device_);
  const std::vector<Verdict> all_ok(size_, Verdict::kOk);
  Report mine{all_ok, all_ok, scope.status()};
  if (mine.status.is_ok()) mine.status = write_all();
  TUTTI_TRY(bootstrap_.barrier(deadline_));
  if (mine.status.is_ok()) mine.status = read_all(mine);
  TUTTI_ASSIGN(auto reports, gather(mine));
  const Status cleared = cuda_.copy(segment_.local, Bytes(kScratchBytes).data(), kScratchBytes);
  TUTTI_ASSIGN(const auto last, gather({all_ok, all_ok, cleared}));
  for (std::size_t rank = 0; rank < size_; ++rank) {
    if (reports[rank].status.is_ok()) reports[rank].status = last[rank].status;
  }
  return reports;
}

Member PeerCheck::introduce() {
  Member mine;
  std::random_device entropy;
  mine.token = (std::uint64_t{entropy()} << 32) | entropy();
  const auto fill = [&]() -> Status {
    if (!segment_.zero_copy() || segment_.bytes < kScratchBytes || slot_bytes_ == 0)
      return {StatusCode::kInvalidArgument,
              fmt::format("needs symmetric memory of at least {} bytes and at most {} ranks",
                          kScratchBytes, kScratchBytes / (2 * kSlotAlignment))};
    TUTTI_ASSIGN(const CudaPointer pointer, cuda_.pointer(segment_.local));
    device_ = pointer.device;
    TUTTI_ASSIGN(const CudaDeviceProperties properties, cuda_.properties(pointer.device));
    mine.uuid = properties.uuid;
    mine.pci_bus_id = properties.pci_bus_id;
    return Status::ok();
  };
  mine.status = fill();
  return mine;
}

Report PeerCheck::known() const {
  Report report;
  for (std::size_t peer = 0; peer < size_; ++peer) {
    const Verdict cached =
        VerdictCache::process().get(cuda_, members_[peer].uuid, members_[rank_].uuid);
    report.arrived.push_back(peer == rank_ ? Verdict::kOk : cached);
  }
  report.fetched = report.arrived;
  return report;
}

// From this GPU's memory, so that it is the GPU that stores into its peer, not the host.
Status PeerCheck::write_all() {
  for (std::size_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const Bytes text = pattern(members_[rank_], rank_, peer, slot_bytes_);
    TUTTI_TRY(cuda_.copy(transit(peer), text.data(), slot_bytes_));
    TUTTI_TRY(cuda_.copy(inbound(peer, rank_), transit(peer), slot_bytes_));
  }
  return Status::ok();
}

Status PeerCheck::read_all(Report& report) {
  const Bytes nothing(slot_bytes_);
  for (std::size_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    TUTTI_ASSIGN(report.arrived[peer], compare(inbound(rank_, peer), peer, rank_));
    // Emptied first: what is still there from writing would look like what should be fetched.
    TUTTI_TRY(cuda_.copy(transit(peer), nothing.data(), slot_bytes_));
    TUTTI_TRY(cuda_.copy(transit(peer), inbound(peer, rank_), slot_bytes_));
    TUTTI_ASSIGN(report.fetched[peer], compare(transit(peer), rank_, peer));
  }
  return Status::ok();
}

Result<Verdict> PeerCheck::compare(const std::byte* device_bytes, std::size_t writer,
                                   std::size_t reader) {
  Bytes seen(slot_bytes_);
  TUTTI_TRY(cuda_.copy(seen.data(), device_bytes, slot_bytes_));
  const bool same = seen == pattern(members_[writer], writer, reader, slot_bytes_);
  return same ? Verdict::kOk : Verdict::kFailed;
}

Result<std::vector<Report>> PeerCheck::gather(const Report& mine) {
  TUTTI_ASSIGN(const auto gathered, bootstrap_.all_gather(encode(mine), deadline_));
  return decode_reports(gathered, bootstrap_.names());
}

std::string PeerCheck::pair_text(int from, int to) const {
  const RankNames names = bootstrap_.names();
  const auto gpu = [this](int rank) { return members_[static_cast<std::size_t>(rank)].pci_bus_id; };
  return fmt::format("{} (GPU {}) to {} (GPU {})", names.of(from), gpu(from), names.of(to),
                     gpu(to));
}

Status PeerCheck::conclude(const std::vector<Report>& reports) {
  for (std::size_t rank = 0; rank < size_; ++rank) {
    if (!reports[rank].status.is_ok())
      return {StatusCode::kUnavailable,
              fmt::format("peer access check: {}: {}", bootstrap_.names().of(rank),
                          reports[rank].status.message())};
  }
  for (std::size_t from = 0; from < size_; ++from) {
    for (std::size_t to = 0; to < size_; ++to) {
      if (from == to) continue;
      // What `to` fetched is wrong too where what it had written there never arrived.
      const bool lost = reports[to].arrived[from] == Verdict::kFailed;
      const bool unread = reports[to].fetched[from] == Verdict::kFailed &&
                          reports[from].arrived[to] == Verdict::kOk;
      const bool bad = lost || unread;
      if (bad) lost_.emplace_back(static_cast<int>(from), static_cast<int>(to));
      VerdictCache::process().set(cuda_, members_[from].uuid, members_[to].uuid,
                                  bad ? Verdict::kFailed : Verdict::kOk);
    }
  }
  if (lost_.empty()) return Status::ok();
  return {StatusCode::kUnavailable,
          fmt::format("data is lost on the way from {} although the driver grants peer access; "
                      "check ACS and IOMMU settings and `nvidia-smi topo -p2p rw`",
                      pair_text(lost_.front().first, lost_.front().second))};
}

}  // namespace

Status verify_peer_access(Bootstrap& bootstrap, CudaDriver& cuda, const SymmetricSegment& segment,
                          Deadline deadline, RankPairs* lost) {
  PeerCheck check(bootstrap, cuda, segment, deadline);
  Status status = check.run();
  if (lost != nullptr) lost->insert(lost->end(), check.lost().begin(), check.lost().end());
  if (status.code() == StatusCode::kUnavailable && bootstrap.rank() == 0)
    log_once(LogLevel::kWarn, status.message());
  return status;
}

}  // namespace tutti
