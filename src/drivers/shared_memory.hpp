// Anonymous shared memory that goes from process to process as a descriptor. Nothing with a name is
// left behind: memfd, or where it is refused, a 0600 file in /dev/shm that is unlinked at once.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "base/fd.hpp"
#include "tutti/status.hpp"

namespace tutti {

class SharedMemoryDriver {
 public:
  virtual ~SharedMemoryDriver() = default;
  // Zeroed; backed by real pages (a full /dev/shm, or more than the memory that is free, is
  // kResourceExhausted here, not SIGBUS or a killed process later).
  virtual Result<Fd> create(std::size_t bytes) = 0;
  // kInvalidArgument where the descriptor is not shared memory of at least `bytes`.
  virtual Result<std::byte*> map(int fd, std::size_t bytes) = 0;
  virtual void unmap(std::byte* address, std::size_t bytes) = 0;
};

SharedMemoryDriver& real_shared_memory();
// What real_shared_memory() does where memfd is refused.
SharedMemoryDriver& dev_shm_shared_memory();
// The same as real_shared_memory(), but descriptors are shown under `name` in /proc/<pid>/fd.
std::unique_ptr<SharedMemoryDriver> named_shared_memory(std::string name);

// A new file of mode 0600, zeroed, whose pages are there: what map() maps, but with a name that
// stays. kSystem where there is one already.
Result<Fd> create_private_file(const std::string& path, std::size_t bytes);

// A descriptor whose content nobody can change any more, for handing to a child process.
Result<Fd> make_sealed_memory(ByteView content);
// kInvalidArgument where it is not sealed or holds more than `max_bytes`. Moves no file offset.
Result<Bytes> read_sealed_memory(int fd, std::size_t max_bytes);

}  // namespace tutti
