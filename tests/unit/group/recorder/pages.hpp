// Pages for tests: recorders with operations in them, and what a reader sees.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <stdlib.h>
#include <string>

#include "group/recorder/find_pages.hpp"
#include "group/recorder/flight_recorder.hpp"
#include "support/check.hpp"

namespace tutti::test {

inline constexpr std::uint64_t kGroup = 0x0123456789abcdef, kHost = 77;

class TraceFolder {
 public:
  TraceFolder() : path_(testing::TempDir() + "tutti_traces_XXXXXX") {
    require(::mkdtemp(path_.data()) != nullptr, "no folder");
  }
  ~TraceFolder() { std::filesystem::remove_all(path_); }
  TraceFolder(const TraceFolder&) = delete;
  TraceFolder& operator=(const TraceFolder&) = delete;
  const std::string& path() const { return path_; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

inline std::unique_ptr<FlightRecorder> open_recorder(int rank = 1, const std::string& folder = {}) {
  return take(
      FlightRecorder::open({.group = kGroup, .rank = rank, .ranks = 3, .host_id = kHost}, folder));
}

inline OperationNote note_of(std::uint64_t sequence) {
  return {.sequence = sequence,
          .row = "all_reduce/one_shot",
          .count = 10 * sequence,
          .dtype = DataType::kBfloat16,
          .op = OpKind::kMax,
          .signature = static_cast<std::uint32_t>(sequence)};
}

inline void run_operation(FlightRecorder& recorder, std::uint64_t sequence) {
  recorder.begin(note_of(sequence));
  recorder.end(sequence, true);
}

inline Snapshot look_at(const FlightRecorder& recorder) {
  return take(parse_page(take(read_page(recorder.descriptor()))));
}

}  // namespace tutti::test
