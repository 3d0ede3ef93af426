// Keeps a rank's last operations where another process can read them: the writing side of page.hpp.
//
// The page is anonymous shared memory, found through this process's descriptors in /proc and gone
// with them, however the process ends. Where a folder for traces is given it is a file there
// instead: the last words of a process that was killed. Destroying the recorder removes the file,
// unless there was a failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "drivers/shared_memory.hpp"
#include "group/recorder/page.hpp"
#include "memory/mapping.hpp"
#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

// Whose operations a page holds.
struct RecordedRank {
  std::uint64_t group = 0;  // random; the same on every rank
  int rank = 0, ranks = 1;
  int ranks_here = 0;  // of the group, on this host; 0: unknown
  std::uint64_t host_id = 0;
  Backend backend = Backend::kHost;
  int device = -1;
};

// An operation as it begins.
struct OperationNote {
  std::uint64_t sequence = 0;  // from 1
  std::string_view row;
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;
  std::optional<OpKind> op = OpKind::kSum;  // none: it computes nothing
  std::uint32_t signature = 0;
  OperationState state = OperationState::kRunning;
  bool numbered = false;  // see number()
};

class FlightRecorder {
 public:
  // Nothing is recorded: every call does nothing.
  FlightRecorder() = default;
  // `folder`, if not empty, is where the page is a file; made with mode 0700 where it is missing.
  static Result<std::unique_ptr<FlightRecorder>> open(const RecordedRank& rank,
                                                      const std::string& folder);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  // Of one operation at a time; 0.1 us together.
  void begin(const OperationNote& note);
  void end(std::uint64_t sequence, bool good);
  // Of an operation that has begun: gives it the next number among those that ranks compare. Once
  // it can no longer be refused on this rank alone.
  void number(std::uint64_t sequence, std::uint32_t signature);

  // From any thread: every enqueued operation up to `sequence` is done.
  void done_through(std::uint64_t sequence);
  // At most once, from any thread.
  void fail(const Status& cause);
  // From any thread: the operation that failed waited for this rank. Where a wait has told already
  // for whom it waits, that stays.
  void waited_for(int rank);
  // Where a wait tells of the ranks that have not come, as bits; 0: none. Null: nobody looks.
  std::uint64_t* waits_for() { return page_ == nullptr ? nullptr : &header().waits_for; }

  int descriptor() const { return file_.get(); }  // of the page; -1: there is none
  const std::shared_ptr<Mapping>& page() const { return mapping_; }  // null: there is none

 private:
  Status map(std::unique_ptr<SharedMemoryDriver> memory, const RecordedRank& rank);
  PageHeader& header() { return *reinterpret_cast<PageHeader*>(page_); }
  PageRecord& record(std::uint64_t sequence) {
    return reinterpret_cast<PageRecord*>(page_ + sizeof(PageHeader))[sequence % kPageRecords];
  }

  Fd file_;
  std::string path_;  // empty: the page has no name
  std::shared_ptr<Mapping> mapping_;
  std::byte* page_ = nullptr;  // in it
  std::uint64_t number_ = 0;   // of the latest operation that has one
  std::uint32_t chain_ = 0;
};

}  // namespace tutti
