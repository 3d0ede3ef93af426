// Where pages are found: in the descriptors of this user's processes, and in a folder of traces.
#pragma once

#include <string>
#include <vector>

#include "group/recorder/snapshot.hpp"

namespace tutti {

// What has become of the process that writes a page.
enum class WriterState : std::uint8_t {
  kUnknown,  // it runs, or ran, on another host or in another container
  kRunning,
  kStopped,  // by SIGSTOP, a terminal or a debugger
  kEnded,
};
std::string_view to_string(WriterState state);  // "stopped"

struct FoundPage {
  Snapshot page;
  WriterState writer = WriterState::kUnknown;
};

struct FoundPages {
  std::vector<FoundPage> pages;      // by group and rank
  std::vector<std::string> refused;  // "FILE: why it is no page"
};

// Each page once, in whatever number of processes it is open.
FoundPages pages_of_processes();

// The files of a folder that are called like pages. `host_id` is this process's, for knowing which
// writers are processes of this host. kInvalidArgument where there is no such folder.
Result<FoundPages> pages_in_folder(const std::string& folder, std::uint64_t host_id);

// The bytes of a page while it is written: a record that does not hold still is left empty.
// kUnavailable where it cannot be read.
Result<Bytes> read_page(int fd);

}  // namespace tutti
