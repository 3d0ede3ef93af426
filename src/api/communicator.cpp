#include "tutti/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "api/group.hpp"
#include "api/guard.hpp"
#include "base/knobs.hpp"
#include "base/process_environment.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "bootstrap/bootstrap.hpp"
#include "group/communicator_impl.hpp"
#include "group/in_process.hpp"
#include "memory/symmetric_heap.hpp"

namespace tutti {
namespace {

Status check(const CommunicatorOptions& options) {
  if (options.timeout.count() < 0) {
    return {StatusCode::kInvalidArgument,
            fmt::format("timeout {} ms: a deadline must not be negative", options.timeout.count())};
  }
  if (options.device < -1) {
    return {StatusCode::kInvalidArgument,
            fmt::format("device {}: a GPU's number from 0 on, or -1 for this rank's own",
                        options.device)};
  }
  const auto backends = {Backend::kAuto, Backend::kHost, Backend::kCuda};
  if (std::ranges::find(backends, options.backend) == backends.end()) {
    return {StatusCode::kInvalidArgument,
            fmt::format("unknown backend {}", static_cast<int>(options.backend))};
  }
  return Status::ok();
}

Result<Communicator> create_on(std::unique_ptr<Bootstrap> group, const CommunicatorOptions& options,
                               int local_rank) {
  Drivers drivers = Drivers::real();
  drivers.local_rank = local_rank;
  TUTTI_ASSIGN(auto impl, CommunicatorImpl::create(std::move(group), options, drivers));
  return Communicator(std::move(impl));
}

// Of ranks that have not met in time.
Result<std::unique_ptr<Bootstrap>> with_timeout(Result<std::unique_ptr<Bootstrap>> group,
                                                const Timeout& timeout) {
  const Status& met = group.status();
  if (met.code() != StatusCode::kTimeout) return group;
  return Status(met.code(), fmt::format("{}; {}", met.message(), to_string(timeout)));
}

Status check_group(int rank, int size) {
  if (size < 1) return {StatusCode::kInvalidArgument, "a group has at least one rank"};
  if (rank < 0 || rank >= size) {
    return {StatusCode::kInvalidArgument, "rank must be at least 0 and less than size"};
  }
  return Status::ok();
}

}  // namespace

Result<UniqueId> UniqueId::create() {
  return guarded([&]() -> Result<UniqueId> {
    TUTTI_ASSIGN(const GroupId id, GroupId::local());
    return UniqueId(id.to_text());
  });
}

Result<UniqueId> UniqueId::create_tcp(std::string_view host, int port) {
  return guarded([&]() -> Result<UniqueId> {
    if (port < 0 || port > 65535) {
      return Status(StatusCode::kInvalidArgument,
                    "a port is between 1 and 65535, or 0 for a free one of this host");
    }
    TUTTI_ASSIGN(const GroupId id,
                 GroupId::tcp(std::string(host), static_cast<std::uint16_t>(port)));
    return UniqueId(id.to_text());
  });
}

Result<UniqueId> UniqueId::from_text(std::string_view text) {
  return guarded([&]() -> Result<UniqueId> {
    TUTTI_ASSIGN(const GroupId id, GroupId::from_text(text));
    return UniqueId(id.to_text());
  });
}

Result<Communicator> Communicator::create(const UniqueId& id, int rank, int size,
                                          const CommunicatorOptions& options) {
  return guarded([&]() -> Result<Communicator> {
    TUTTI_TRY(check(options));
    TUTTI_TRY(check_group(rank, size));
    if (rank == 0) Knobs::report();
    TUTTI_ASSIGN(const GroupId group_id, GroupId::from_text(id.text()));
    const Timeout timeout = timeout_of(options);
    TUTTI_ASSIGN(auto group,
                 with_timeout(join_group(group_id, rank, size, Deadline(timeout.value)), timeout));
    return create_on(std::move(group), options, rank);
  });
}

Result<Communicator> Communicator::create_from_environment(const CommunicatorOptions& options) {
  return guarded([&]() -> Result<Communicator> {
    TUTTI_TRY(check(options));
    const auto launch = read_launch_environment(process_environment());
    if (!launch.is_ok() || launch->rank == 0) Knobs::report();
    TUTTI_ASSIGN(const LaunchEnvironment launched, launch);
    const Timeout timeout = timeout_of(options);
    TUTTI_ASSIGN(
        auto group,
        with_timeout(join_group_from_environment(launched, Deadline(timeout.value)), timeout));
    return create_on(std::move(group), options, launched.local_rank);
  });
}

Result<std::vector<Communicator>> Communicator::create_in_process(
    int ranks, const CommunicatorOptions& options) {
  return guarded([&]() -> Result<std::vector<Communicator>> {
    TUTTI_TRY(check_group(0, ranks));
    constexpr int kFarTooMany = 1 << 16;  // the number is judged below: not so much memory for it
    const std::vector<int> devices(static_cast<std::size_t>(std::min(ranks, kFarTooMany)), -1);
    return create_in_process(devices, options);
  });
}

Result<std::vector<Communicator>> Communicator::create_in_process(
    std::span<const int> devices, const CommunicatorOptions& options) {
  return guarded([&]() -> Result<std::vector<Communicator>> {
    TUTTI_TRY(check(options));
    Knobs::report();
    TUTTI_ASSIGN(auto ranks, tutti::create_in_process(devices, options, Drivers::real()));
    std::vector<Communicator> communicators;
    communicators.reserve(ranks.size());
    for (auto& rank : ranks) communicators.emplace_back(std::move(rank));
    return communicators;
  });
}

Communicator::Communicator(std::unique_ptr<CommunicatorImpl> impl) : impl_(std::move(impl)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&& other) noexcept {
  Communicator taken(std::move(other));
  impl_.swap(taken.impl_);
  return *this;
}
Communicator::~Communicator() {
  if (impl_ != nullptr) drop_noted(*impl_);
}

int Communicator::rank() const { return impl_->rank(); }
int Communicator::size() const { return impl_->size(); }
Backend Communicator::backend() const { return impl_->backend(); }
int Communicator::device() const { return impl_->device(); }

Result<std::unique_ptr<Communicator>> Communicator::split(int color, int key) {
  return guarded(*impl_, [&]() -> Result<std::unique_ptr<Communicator>> {
    TUTTI_ASSIGN(auto impl, impl_->split(color, key));
    if (impl == nullptr) return std::unique_ptr<Communicator>();
    return std::make_unique<Communicator>(std::move(impl));
  });
}

Result<Survivors> Communicator::shrink(std::chrono::milliseconds within) {
  return guarded(*impl_, [&]() -> Result<Survivors> {
    if (within.count() < 0) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("shrink({} ms): a deadline must not be negative", within.count()));
    }
    TUTTI_ASSIGN(auto shrunk, impl_->shrink(within));
    return Survivors{std::make_unique<Communicator>(std::move(shrunk.group)),
                     std::move(shrunk.missing)};
  });
}

// What SymmetricMemory holds on to: the segment outlives the communicator if it must.
class SymmetricMemoryImpl {
 public:
  explicit SymmetricMemoryImpl(std::shared_ptr<SymmetricSegment> segment, std::size_t bytes)
      : segment_(std::move(segment)), bytes_(bytes) {}
  const SymmetricSegment& segment() const { return *segment_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<SymmetricSegment> segment_;
  std::size_t bytes_;
};

Result<SymmetricMemory> Communicator::allocate(std::size_t bytes) {
  return guarded(*impl_, [&]() -> Result<SymmetricMemory> {
    TUTTI_ASSIGN(auto segment, impl_->allocate(bytes));
    return SymmetricMemory(std::make_shared<SymmetricMemoryImpl>(std::move(segment), bytes));
  });
}

Result<SymmetricMemory> Communicator::register_memory(void* address, std::size_t bytes) {
  return guarded(*impl_, [&]() -> Result<SymmetricMemory> {
    if (address == nullptr || bytes == 0) {
      return Status(StatusCode::kInvalidArgument, "register_memory: null address or zero bytes");
    }
    if (bytes > kMostBytes) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("register_memory: {} bytes, and at most {}", bytes, kMostBytes));
    }
    TUTTI_ASSIGN(auto segment, impl_->register_memory(address, bytes));
    return SymmetricMemory(std::make_shared<SymmetricMemoryImpl>(std::move(segment), bytes));
  });
}

Result<LocalMemory> Communicator::allocate_local(std::size_t bytes) {
  return guarded([&]() -> Result<LocalMemory> {
    TUTTI_ASSIGN(auto memory, impl_->allocate_local(bytes));
    return LocalMemory(std::move(memory), bytes);
  });
}

Status Communicator::start_capture() {
  return guarded(*impl_, [&] { return impl_->start_capture(); });
}
Status Communicator::finish_capture() {
  return guarded(*impl_, [&] { return impl_->finish_capture(); });
}
Status Communicator::prepare() {
  return guarded(*impl_, [&] { return impl_->prepare_executor(kPeerExecutor); });
}
Status Communicator::prepare_nccl() {
  return guarded(*impl_, [&] { return impl_->prepare_executor(kNcclExecutor); });
}
Status Communicator::set_timeout(std::chrono::milliseconds timeout) {
  return guarded([&] { return impl_->set_timeout(timeout); });
}

void Communicator::abort(std::string_view reason) {
  guarded([&] { impl_->abort(reason); });
}
Status Communicator::status() const {
  return guarded([&] { return impl_->status(); });
}
Communicator::Failure Communicator::failure() const {
  Failure failure;
  const Status known = guarded([&] {
    failure = impl_->describe_failure();
    return Status::ok();
  });
  // Without memory for its texts, at least the code.
  if (!known.is_ok()) failure.code = status().code();
  return failure;
}
Communicator::Counters Communicator::counters() const { return impl_->counters(); }

Result<Plan> Communicator::plan(std::string_view collective, const Query& query) const {
  return guarded([&]() -> Result<Plan> {
    TUTTI_ASSIGN(const Collective which, parse_collective(collective));
    return impl_->plan(which, query);
  });
}

std::string explain(const Communicator& communicator, std::string_view collective,
                    const Communicator::Query& query) {
  return guarded_text([&]() -> std::string {
    const auto which = parse_collective(collective);
    if (!which.is_ok()) return which.status().message() + "\n";
    CommunicatorImpl& impl = communicator.impl();
    return explain(impl.question(*which, query), impl.topology(), impl.table());
  });
}

void* SymmetricMemory::data() const { return impl_ ? impl_->segment().local : nullptr; }
std::size_t SymmetricMemory::size() const { return impl_ ? impl_->bytes() : 0; }
bool SymmetricMemory::zero_copy() const { return impl_ && impl_->segment().zero_copy(); }
void* SymmetricMemory::peer(int rank) const {
  if (!zero_copy() || rank < 0) return nullptr;
  const auto& at = impl_->segment().at;
  return static_cast<std::size_t>(rank) < at.size() ? at[static_cast<std::size_t>(rank)] : nullptr;
}

}  // namespace tutti
