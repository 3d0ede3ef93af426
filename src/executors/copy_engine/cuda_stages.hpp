// Runs a body of copies and kernels (device/copy_engine/stages.hpp): kernels on the caller's
// stream, copies on one of the communicator's own, events where one waits for the other. Where a
// kernel would do nothing but let ranks meet, a StreamBarrier can do it instead. If both streams
// are the same, which is a lane without events, no driver call makes them wait for each other.
#pragma once

#include <vector>

#include "device/copy_engine/stages.hpp"
#include "executors/copy_engine/copy_lanes.hpp"
#include "executors/peer/cuda.hpp"
#include "operation/arrivals.hpp"

namespace tutti {

class StreamBarrier;

class CudaStages : public Stages {
 public:
  // `barrier`: what ranks meet by where nothing is reduced; null: the kernel.
  CudaStages(CudaDriver& cuda, const CudaBody& body, CopyLane& lane, Stream stream,
             StreamBarrier* barrier = nullptr)
      : cuda_(cuda), body_(body), lane_(lane), stream_(stream), barrier_(barrier) {}

  // Copies into `output` from here on are cut into chunks, each followed by a write of its word by
  // a stream memory operation. The device has these. What is behind the end of the output, in
  // `bytes` of equal pieces, is not copied, nor is the rank's own piece. With Arrivals::pull
  // nothing is copied.
  void announce(const Arrivals& arrivals, const std::byte* output, std::size_t bytes) {
    arrivals_ = arrivals;
    output_ = output;
    pieces_bytes_ = bytes;
  }

  void reduce(const KernelArgs& part, Publish publish) override;
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (bytes > 0) gathered_.push_back({to, from, bytes});
  }
  void end_batch() override;
  void copy_among_kernels(std::byte* to, const std::byte* from, std::size_t bytes) override;
  Mark kernels() override { return mark(stream_); }
  Mark copies() override { return mark(lane_.stream); }
  void kernels_wait(Mark copies) override { wait(stream_, copies); }
  void copies_wait(Mark kernels) override { wait(lane_.stream, kernels); }

  // The program has ended. Of the first thing that could not be enqueued; nothing was after it.
  const Status& finish() {
    end_batch();
    write_words();
    return status_;
  }

 private:
  void copy_now(const CudaCopy& copy, Stream stream);
  std::size_t offset_of(const void* to) const;
  void copy_and_announce(const CudaCopy& copy);
  void have_pulled();
  void write_words();
  void record_met(Stream stream);
  Mark mark(Stream stream);
  void wait(Stream stream, Mark mark);

  CudaDriver& cuda_;
  CudaBody body_;
  CopyLane& lane_;
  Stream stream_;
  StreamBarrier* barrier_;
  std::vector<CudaCopy> gathered_;  // what no verb stands between
  // Writes that nothing was enqueued behind yet: one batch with those of a barrier that follows.
  std::vector<CudaMemoryOperation> words_;
  Arrivals arrivals_ = {};
  const std::byte* output_ = nullptr;
  std::size_t pieces_bytes_ = 0;
  Status status_ = Status::ok();
};

}  // namespace tutti
