// How the streams of ranks order what they do to each other's memory, one word at a time: the waits
// of pipelines (src/pipelines/), enqueued as stream memory operations, and the host's watch over
// them. Words are in the pages of a StreamBarrier, and so is the health of the ranks, which ends
// waits in the same way (barrier_words.hpp).
//
// A call has an epoch, which grows with the number of the group's pipeline calls. For a wait for
// word w of rank r, stream number s of this rank does
//
//   write  own at[s]    = the number of the wait among those of s
//   wait   own word w  >= epoch
//   wait   own health  >= all healthy
//
// and the writer's stream writes the epoch into w. So the host knows in which wait each stream is:
// in the latest that it has begun, unless its word has come. Each word has one writer, whose calls
// follow each other. So its values grow, also where another pipeline takes a slot over, and nothing
// is ever reset.
#pragma once

#include <array>
#include <deque>
#include <mutex>
#include <optional>

#include "base/deadline.hpp"
#include "executors/copy_engine/barrier_words.hpp"

namespace tutti {

inline constexpr int kPipelineSlots = 16;    // pipelines that a group keeps
inline constexpr int kPipelineWords = 64;    // of each kind, by each writer
inline constexpr int kPipelineStreams = 17;  // the caller's is the last
// Of each rank.
struct PipelinePage : BarrierPage {
  // [pipeline][ready, done][writer][index], each by its writer's streams
  std::uint64_t words[kPipelineSlots][2][kMaxCudaRanks][kPipelineWords];
  std::uint64_t at[kPipelineStreams];  // the latest wait of each stream, by the owner's streams
};

struct PipelineWord {
  int slot = 0;  // the pipeline's
  bool is_done = false;
  int writer = 0, index = 0;
};

inline std::uint64_t& word_in(PipelinePage& page, const PipelineWord& word) {
  return page.words[word.slot][word.is_done ? 1 : 0][word.writer][word.index];
}

// Completes the record of a stream's wait, of which `record` says who waits for what.
FailureRecord failed_wait(FailureRecord record, FailureReason reason,
                          RunningClock::time_point since);

class StreamWaits {
 public:
  // Of all ranks, as the host and as streams address them: each is a PipelinePage. Both outlive
  // this.
  StreamWaits(CudaDriver& cuda, int rank, const BarrierPages& on_host,
              const BarrierPages& on_device)
      : cuda_(cuda), rank_(rank), on_host_(on_host), on_device_(on_device) {}

  // One call of all ranks.
  struct Call {
    std::uint64_t epoch = 0;
    std::uint64_t sequence = 0, timeout_ns = 0;  // 0: the usual one
    std::uint32_t signature = 0;
  };
  // The epoch of the next call.
  std::uint64_t next_epoch() { return ++epoch_; }

  // In stream order; `number`: which of kPipelineStreams `stream` is. The device is current.
  Status await(const Call& call, const PipelineWord& word, int number, Stream stream);
  // Writes the word of another rank.
  Status signal(const Call& call, int rank, const PipelineWord& word, Stream stream);

  // As those of StreamBarrier.
  std::optional<FailureRecord> look(std::uint64_t usual_ns, std::uint32_t notices);
  std::optional<FailureRecord> waiting();
  void release();

 private:
  using Clock = RunningClock;
  struct Pending {
    std::uint64_t number = 0;  // of the wait in its stream
    PipelineWord word;
    Call call;
  };
  struct Watched {               // of one stream
    std::uint64_t enqueued = 0;  // waits
    std::deque<Pending> pending;
    std::uint64_t waiting_in = 0;  // the number of the wait that it was in at the last look
    Clock::time_point since;
    int left = -1;  // for whom it waited then, although that rank had left
  };

  static PipelinePage& page_of(const BarrierPages& pages, int rank) {
    return static_cast<PipelinePage&>(*pages[static_cast<std::size_t>(rank)]);
  }
  PipelinePage& own() const { return page_of(on_host_, rank_); }
  const Pending* current(std::size_t number);
  int missing_rank(const Pending& pending) const;
  std::optional<FailureRecord> look_at(std::size_t number, std::uint64_t usual_ns,
                                       std::uint32_t notices);
  FailureRecord record_of(const Pending& pending, Clock::time_point since, int missing,
                          FailureReason reason) const;

  CudaDriver& cuda_;
  const int rank_;
  const BarrierPages& on_host_;
  const BarrierPages& on_device_;
  std::uint64_t epoch_ = 0;

  std::mutex mutex_;  // not held while something is enqueued, which may block
  bool released_ = false;
  std::array<Watched, kPipelineStreams> streams_;
};

}  // namespace tutti
