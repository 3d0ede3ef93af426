// A that comes from the host's memory while it is multiplied: copies of a copy engine, in a stream
// of their own, each followed by the flag of its chunk.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/matmul/sets.hpp"
#include "matmul/predict_gated.hpp"

namespace tutti::cli {

class HostArrival {
 public:
  // Of the A of `sets`; the shards of `call.plan` come one after the other, from the one behind the
  // own one on. All must outlive it. kUnsupported where a stream cannot write a flag.
  static Result<std::shared_ptr<HostArrival>> make(CudaDriver& cuda, MatmulDevice& device,
                                                   const GatedCall& call, const MatmulSets& sets);
  ~HostArrival();
  HostArrival(const HostArrival&) = delete;
  HostArrival& operator=(const HostArrival&) = delete;

  // Where A comes to; its own shard does not.
  const std::byte* a() const { return arrived_.get(); }
  Status poison();

  // Enqueues all copies, which begin when `stream` has come here. Each sets its flag to `epoch`.
  Status begin(std::uint32_t* flags, std::uint32_t epoch, Stream stream);
  // What follows in `stream` begins when all have come.
  Status end(Stream stream);

 private:
  HostArrival(CudaDriver& cuda, MatmulDevice& device, const GatedCall& call);
  Status open(const MatmulSets& sets);
  Status copy_chunk(int chunk, std::uint32_t* flags, std::uint32_t epoch);

  CudaDriver& cuda_;
  MatmulDevice& device_;
  ArrivalPlan plan_;
  std::size_t rows_, row_bytes_;
  std::shared_ptr<std::byte> arrived_;
  std::byte* pinned_ = nullptr;
  Stream side_ = nullptr;
  CudaEvent ready_ = nullptr, done_ = nullptr;
};

}  // namespace tutti::cli
