#include "group/recorder/flight_recorder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <new>

#include "base/host_name.hpp"
#include "base/system_error.hpp"
#include "base/try.hpp"
#include "drivers/processes.hpp"
#include "tutti/version.hpp"

namespace tutti {
namespace {

using Words = std::array<std::uint64_t, sizeof(PageRecord) / sizeof(std::uint64_t)>;

std::uint64_t steady_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

std::int64_t unix_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

template <std::size_t kRoom>
void copy_text(std::array<char, kRoom>& to, std::string_view text) {
  text.copy(to.data(), kRoom - 1);  // the page was zeroed: the text ends with a zero
}

template <class T>
void store(T& word, T value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

// Whoever sees one of the words between the two stores of the version sees that it is odd.
template <class F>
void rewrite(PageRecord& record, F&& f) {
  const std::uint64_t version = std::atomic_ref(record.version).load(std::memory_order_relaxed);
  std::atomic_ref(record.version).store(version + 1, std::memory_order_relaxed);
  f();
  store(record.version, version + 2);
}

PageHeader describe(const RecordedRank& rank) {
  PageHeader header{};  // the magic number is missing
  header.page_version = kPageVersion;
  header.header_bytes = sizeof(PageHeader);
  header.record_bytes = sizeof(PageRecord);
  header.records = kPageRecords;
  header.group = rank.group;
  header.rank = rank.rank;
  header.ranks = rank.ranks;
  header.ranks_here = static_cast<std::uint32_t>(rank.ranks_here);
  header.host_id = rank.host_id;
  header.process_id = ::getpid();
  header.process_start = process_facts(::getpid()).value_or(ProcessFacts{}).start;
  header.backend = static_cast<std::int32_t>(rank.backend);
  header.device = rank.device;
  header.opened_unix_ns = unix_ns();
  header.opened_ns = steady_ns();
  header.library_version = TUTTI_VERSION;
  copy_text(header.host, host_name());
  return header;
}

// Each page is a descriptor as long as its group lives. A group works without its page, but not
// without the other descriptors that it needs: the last quarter is for those.
Status leaves_descriptors(int page) {
  const std::uint64_t limit = descriptor_limit();
  if (static_cast<std::uint64_t>(page) < limit - limit / 4) return Status::ok();
  return {StatusCode::kResourceExhausted,
          fmt::format("most of the {} descriptors of this process are in use: raise the limit "
                      "(ulimit -n) to record more groups",
                      limit)};
}

}  // namespace

Result<std::unique_ptr<FlightRecorder>> FlightRecorder::open(const RecordedRank& rank,
                                                             const std::string& folder) {
  auto recorder = std::make_unique<FlightRecorder>();
  auto memory = named_shared_memory(kPageName);
  if (folder.empty()) {
    TUTTI_ASSIGN(recorder->file_, memory->create(kPageBytes));
    TUTTI_TRY(leaves_descriptors(recorder->file_.get()));
  } else {
    ::mkdir(folder.c_str(), 0700);
    const std::string path =
        fmt::format("{}/{}-{:016x}-{:04}.page", folder, kPageName, rank.group, rank.rank);
    TUTTI_ASSIGN(recorder->file_, create_private_file(path, kPageBytes));
    recorder->path_ = path;
  }
  TUTTI_TRY(recorder->map(std::move(memory), rank));
  return recorder;
}

Status FlightRecorder::map(std::unique_ptr<SharedMemoryDriver> memory, const RecordedRank& rank) {
  auto page = memory->map(file_.get(), kPageBytes);
  if (!page.is_ok()) {
    if (!path_.empty()) ::unlink(path_.c_str());
    return page.status();
  }
  page_ = *page;
  mapping_ =
      std::make_shared<Mapping>(page_, Mapping::Origin::kThisProcess,
                                [driver = std::shared_ptr<SharedMemoryDriver>(std::move(memory)),
                                 address = page_] { driver->unmap(address, kPageBytes); });
  PageHeader* header = new (page_) PageHeader(describe(rank));
  // Last: a reader that comes before finds a page that is none yet.
  store(header->magic, kPageMagic);
  return Status::ok();
}

FlightRecorder::~FlightRecorder() {
  if (page_ == nullptr) return;
  // A forked child has the page, too, but it is not the child's.
  if (header().process_id == ::getpid()) {
    store(header().closed_ns, steady_ns());
    const bool failed = std::atomic_ref(header().failed_ns).load(std::memory_order_acquire) != 0;
    if (!path_.empty() && !failed) ::unlink(path_.c_str());
  }
}

void FlightRecorder::begin(const OperationNote& note) {
  if (page_ == nullptr) return;
  PageRecord value{};
  value.sequence = note.sequence;
  value.count = note.count;
  value.bytes = note.count * size_of(note.dtype);
  value.started_ns = steady_ns();
  value.signature = note.signature;
  value.state = static_cast<std::uint32_t>(note.state);
  value.dtype = static_cast<std::uint32_t>(note.dtype);
  value.op = note.op ? static_cast<std::uint32_t>(*note.op) : kPageNoOp;
  note.row.copy(value.row.data(), value.row.size() - 1);
  if (note.numbered) {
    value.number = ++number_;
    value.chain = chain_ = chained(chain_, note.signature);
  }
  const auto from = std::bit_cast<Words>(value);
  PageRecord& to = record(note.sequence);
  auto* const words = reinterpret_cast<std::uint64_t*>(&to);
  rewrite(to, [&] {
    for (std::size_t k = 1; k < from.size(); ++k) store(words[k], from[k]);
  });
  if (note.numbered) store(header().numbered, note.sequence);
}

void FlightRecorder::number(std::uint64_t sequence, std::uint32_t signature) {
  if (page_ == nullptr) return;
  PageRecord& begun = record(sequence);
  ++number_;
  chain_ = chained(chain_, signature);
  rewrite(begun, [&] {
    store(begun.number, number_);
    store(begun.chain, chain_);
  });
  store(header().numbered, sequence);
}

void FlightRecorder::end(std::uint64_t sequence, bool good) {
  if (page_ == nullptr) return;
  PageRecord& done = record(sequence);
  // By now the slot may hold a later operation.
  if (std::atomic_ref(done.sequence).load(std::memory_order_relaxed) != sequence) return;
  const auto state = good ? OperationState::kDone : OperationState::kFailed;
  rewrite(done, [&] {
    store(done.ended_ns, steady_ns());
    store(done.state, static_cast<std::uint32_t>(state));
  });
}

void FlightRecorder::done_through(std::uint64_t sequence) {
  if (page_ == nullptr) return;
  if (std::atomic_ref(header().done_through).load(std::memory_order_relaxed) >= sequence) return;
  store(header().done_ns, steady_ns());
  store(header().done_through, sequence);
}

void FlightRecorder::fail(const Status& cause) {
  if (page_ == nullptr) return;
  header().failed_code = static_cast<std::uint32_t>(cause.code());
  copy_text(header().failed_text, cause.message());
  store(header().failed_ns, steady_ns());
}

void FlightRecorder::waited_for(int rank) {
  if (page_ == nullptr || rank < 0 || rank >= 64) return;
  std::uint64_t nobody = 0;
  std::atomic_ref(header().waits_for)
      .compare_exchange_strong(nobody, std::uint64_t{1} << rank, std::memory_order_relaxed);
}

}  // namespace tutti
