// What /proc tells of this user's processes. Another user's are not shown: the kernel opens the
// descriptors of a process only to who could trace it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

struct ProcessFacts {
  char state = '?';  // of its first thread: R, S, D; T stopped; Z, X ended
  int threads = 0;
  std::uint64_t start = 0;  // in clock ticks since boot; two processes of one number differ here

  // Reaped or not. Where only the first thread has ended the process has not.
  bool ended() const;
};

// Nothing where there is no such process.
std::optional<ProcessFacts> process_facts(pid_t process);
// The same from the text of /proc/<pid>/stat.
std::optional<ProcessFacts> parse_process_facts(std::string_view stat);

// Whether the process of this number that began at `start` has ended.
bool has_ended(pid_t process, std::uint64_t start);

struct OpenDescriptor {
  pid_t process = -1;
  std::string path;  // "/proc/17/fd/3": can be opened like a file, though the file has no name
};

// The descriptors of this user's processes whose target has `text` in its name.
std::vector<OpenDescriptor> descriptors_with(std::string_view text);

}  // namespace tutti
