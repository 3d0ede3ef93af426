#include "bench/all_gather_matmul/host_arrival.hpp"

#include "base/try.hpp"
#include "matmul/arrival_trace.hpp"

namespace tutti::cli {

Result<std::shared_ptr<HostArrival>> HostArrival::make(CudaDriver& cuda, MatmulDevice& device,
                                                       const GatedCall& call,
                                                       const MatmulSets& sets) {
  std::shared_ptr<HostArrival> made(new HostArrival(cuda, device, call));
  TUTTI_TRY(made->open(sets).with_context("--arrival host"));
  return made;
}

HostArrival::HostArrival(CudaDriver& cuda, MatmulDevice& device, const GatedCall& call)
    : cuda_(cuda),
      device_(device),
      plan_(call.plan),
      rows_(call.problem.m),
      row_bytes_(call.problem.k * size_of(call.problem.dtype)) {}

// Nothing can be done about a failure here; one that matters has shown before.
HostArrival::~HostArrival() {
  for (const CudaEvent event : {ready_, done_}) {
    if (event != nullptr) static_cast<void>(cuda_.destroy_event(event).is_ok());
  }
  if (side_ != nullptr) static_cast<void>(cuda_.destroy_stream(side_).is_ok());
  if (pinned_ != nullptr) static_cast<void>(cuda_.free_mapped_host(pinned_).is_ok());
}

Status HostArrival::open(const MatmulSets& sets) {
  TUTTI_ASSIGN(const int device, cuda_.current_device());
  TUTTI_ASSIGN(const CudaDeviceProperties properties, cuda_.properties(device));
  if (!properties.stream_memory_operations) {
    return {StatusCode::kUnsupported, "streams of this GPU cannot write a flag"};
  }
  const std::size_t bytes = rows_ * row_bytes_;
  TUTTI_ASSIGN(arrived_, device_.allocate(bytes));
  TUTTI_ASSIGN(pinned_, cuda_.allocate_mapped_host(bytes));
  TUTTI_TRY(device_.copy(pinned_, sets.a(0), bytes));
  TUTTI_ASSIGN(side_, cuda_.create_stream(device));
  TUTTI_ASSIGN(ready_, cuda_.create_event(false));
  TUTTI_ASSIGN(done_, cuda_.create_event(false));
  return poison();
}

Status HostArrival::poison() { return device_.fill(arrived_.get(), kPoison, rows_ * row_bytes_); }

Status HostArrival::begin(std::uint32_t* flags, std::uint32_t epoch, Stream stream) {
  TUTTI_TRY(cuda_.record_event(ready_, stream));
  TUTTI_TRY(cuda_.wait_event(side_, ready_));
  for (int step = 1; step < plan_.shards; ++step) {
    const int shard = (plan_.own + step) % plan_.shards;
    for (int chunk = 0; chunk < plan_.chunks; ++chunk) {
      TUTTI_TRY(copy_chunk(shard * plan_.chunks + chunk, flags, epoch));
    }
  }
  return cuda_.record_event(done_, side_);
}

Status HostArrival::copy_chunk(int chunk, std::uint32_t* flags, std::uint32_t epoch) {
  const ChunkRows rows = rows_of_chunk(plan_, rows_, chunk);
  if (rows.count() == 0) return Status::ok();
  const std::size_t at = rows.first * row_bytes_;
  TUTTI_TRY(cuda_.copy_async(arrived_.get() + at, pinned_ + at, rows.count() * row_bytes_, side_));
  const CudaMemoryOperation flag[] = {
      {.kind = CudaMemoryOperation::Kind::kWrite32, .value = epoch, .word32 = flags + chunk}};
  return cuda_.memory_operations(flag, side_);
}

Status HostArrival::end(Stream stream) { return cuda_.wait_event(stream, done_); }

}  // namespace tutti::cli
