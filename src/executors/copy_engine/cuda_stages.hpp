// Runs a body of copies and kernels (device/copy_engine/stages.hpp): kernels on the caller's
// stream, copies on one of the communicator's own, events where one waits for the other. Where a
// kernel would do nothing but let ranks meet, a StreamBarrier can do it instead. Copies that are
// announced are on the caller's stream, too: then no driver call makes streams wait for each other.
#pragma once

#include <array>
#include <vector>

#include "device/copy_engine/stages.hpp"
#include "executors/peer/cuda.hpp"
#include "operation/arrivals.hpp"

namespace tutti {

class StreamBarrier;

// A stream for copies. Not thread-safe.
struct CopyLane {
  static constexpr std::size_t kEvents = 32;
  Stream stream = nullptr;
  std::array<CudaEvent, kEvents> events{};
  std::size_t taken = 0;     // marks: they go round
  bool is_captured = false;  // what it serves
};

// One lane for what is not captured, and one for each of a few captures that are under way at once:
// a stream stays part of a capture until that ends. Those of captures are made by the first capture
// that needs them: a process has few hardware queues, and streams that share one wait for each
// other.
class CopyLanes {
 public:
  static constexpr std::size_t kCaptures = 4;

  explicit CopyLanes(CudaDriver& cuda) : cuda_(cuda) {}
  ~CopyLanes();
  CopyLanes(const CopyLanes&) = delete;
  CopyLanes& operator=(const CopyLanes&) = delete;

  Status create(int device);
  // kResourceExhausted where as many other captures have lanes.
  Result<CopyLane*> lane_for(Stream stream);

 private:
  Status complete(CopyLane& lane);

  CudaDriver& cuda_;
  int device_ = 0;
  std::array<CopyLane, 1 + kCaptures> lanes_;
};

class CudaStages : public Stages {
 public:
  // `barrier`: what ranks meet by where nothing is reduced; null: the kernel.
  CudaStages(CudaDriver& cuda, const CudaBody& body, CopyLane& lane, Stream stream,
             StreamBarrier* barrier = nullptr)
      : cuda_(cuda),
        body_(body),
        lane_(lane),
        stream_(stream),
        copies_(lane.stream),
        barrier_(barrier) {}

  // First of all. Copies into `output` are cut into chunks, each followed by a write of its word:
  // by a stream memory operation, so not in captures. The device has these.
  void announce(const Arrivals& arrivals, const std::byte* output, std::size_t bytes) {
    arrivals_ = arrivals;
    copies_ = stream_;
    output_ = output;
    output_bytes_ = bytes;
  }

  void reduce(const KernelArgs& part, Publish publish) override;
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (bytes > 0) gathered_.push_back({to, from, bytes});
  }
  void end_batch() override;
  void copy_among_kernels(std::byte* to, const std::byte* from, std::size_t bytes) override;
  Mark kernels() override { return mark(stream_); }
  Mark copies() override { return mark(copies_); }
  void kernels_wait(Mark copies) override { wait(stream_, copies); }
  void copies_wait(Mark kernels) override { wait(copies_, kernels); }

  // The program has ended. Of the first thing that could not be enqueued; nothing was after it.
  const Status& finish() {
    end_batch();
    write_words();
    return status_;
  }

 private:
  void copy_now(const CudaCopy& copy, Stream stream);
  void copy_and_announce(const CudaCopy& copy);
  void write_words();
  Mark mark(Stream stream);
  void wait(Stream stream, Mark mark);

  CudaDriver& cuda_;
  CudaBody body_;
  CopyLane& lane_;
  Stream stream_;
  Stream copies_;
  StreamBarrier* barrier_;
  std::vector<CudaCopy> gathered_;  // what no verb stands between
  // Writes that nothing was enqueued behind yet: one batch with those of a barrier that follows.
  std::vector<CudaMemoryOperation> words_;
  Arrivals arrivals_ = {};
  const std::byte* output_ = nullptr;
  std::size_t output_bytes_ = 0;
  Status status_ = Status::ok();
};

}  // namespace tutti
