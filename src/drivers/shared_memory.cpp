#include "drivers/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/system_error.hpp"
#include "base/try.hpp"
#include "base/write_all.hpp"
#include "drivers/host_files.hpp"

namespace tutti {
namespace {

// What to do where a step ran out of something: descriptors name their limit themselves.
std::string_view advice_on(std::string_view step, int error) {
  if (is_lack_of_descriptors(error)) return {};
  if (step == "map" && error == ENOMEM) {
    return "; this process may map no more: raise vm.max_map_count (sysctl), or the limit of its "
           "address space (ulimit -v)";
  }
  return "; free or enlarge /dev/shm, or the container's memory limit";
}

Status failure(std::string_view step, std::size_t bytes, int error) {
  const bool full = error == EFBIG || code_of_system_error(error) == StatusCode::kResourceExhausted;
  return {full ? StatusCode::kResourceExhausted : StatusCode::kSystem,
          fmt::format("cannot {} {} bytes of shared memory: {}{}", step, bytes,
                      system_error_text(error), full ? advice_on(step, error) : "")};
}

// Takes the pages now: without it a full file system is a SIGBUS at the first store.
Status take_pages(const Fd& memory, std::size_t bytes) {
  int error = 0;
  do {
    error = ::fallocate(memory.get(), 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (error == EINTR);
  return error == 0 ? Status::ok() : failure("allocate", bytes, error);
}

// A file that has a name for no longer than it takes to unlink it.
Result<Fd> open_unlinked_file(const std::string& name, std::size_t bytes) {
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string path =
        fmt::format("/dev/shm/{}-{}-{}", name, ::getpid(), counter.fetch_add(1));
    Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.valid()) {
      ::unlink(path.c_str());
      return file;
    }
    if (errno != EEXIST) return failure("open", bytes, errno);
  }
  return failure("open", bytes, EEXIST);
}

// The number after `name` in lines of "name: 123 kB"; nothing if it is not there.
std::optional<std::uint64_t> kilobytes(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + name.size());
  rest.remove_prefix(std::min(rest.size(), rest.find_first_of("0123456789")));
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return parsed.ec == std::errc{} ? std::optional(value * 1024) : std::nullopt;
}

// What a control group (a container) leaves; nothing where there is no limit.
std::optional<std::uint64_t> group_leaves() {
  const auto number = [](const std::string& path) {
    const std::string text = kernel_text(path);
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    return parsed.ec == std::errc{} ? std::optional(value) : std::nullopt;
  };
  const auto limit = number("/sys/fs/cgroup/memory.max");
  const auto used = number("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return std::nullopt;
  return *limit - std::min(*limit, *used);
}

// Shared memory beyond this would not fail: the system would end processes to make room.
std::uint64_t available_bytes() {
  const std::string memory = kernel_text("/proc/meminfo");
  const auto free = kilobytes(memory, "MemAvailable:");
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
  if (free) bytes = *free + kilobytes(memory, "SwapFree:").value_or(0);
  return std::min(bytes, group_leaves().value_or(bytes));
}

class RealSharedMemory final : public SharedMemoryDriver {
 public:
  explicit RealSharedMemory(bool use_memfd, std::string name = "tutti")
      : use_memfd_(use_memfd), name_(std::move(name)) {}

  Result<Fd> create(std::size_t bytes) override {
    if (bytes == 0 || bytes > static_cast<std::size_t>(std::numeric_limits<off_t>::max())) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("shared memory of {} bytes is not possible", bytes));
    }
    if (bytes > available_bytes()) return failure("allocate", bytes, ENOMEM);
    TUTTI_ASSIGN(Fd memory, open(bytes));
    TUTTI_TRY(take_pages(memory, bytes));
    return memory;
  }

  Result<std::byte*> map(int fd, std::size_t bytes) override {
    struct stat info {};
    if (::fstat(fd, &info) != 0) {
      return Status(
          StatusCode::kInvalidArgument,
          fmt::format("descriptor {} is not open: {}", fd, std::generic_category().message(errno)));
    }
    if (!S_ISREG(info.st_mode) || bytes == 0 || info.st_size < 0 ||
        static_cast<std::size_t>(info.st_size) < bytes) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("descriptor {} is no shared memory of {} bytes (it has {})", fd,
                                bytes, info.st_size));
    }
    void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) return failure("map", bytes, errno);
    return static_cast<std::byte*>(address);
  }

  void unmap(std::byte* address, std::size_t bytes) override {
    if (address != nullptr) ::munmap(address, bytes);
  }

 private:
  Result<Fd> open(std::size_t bytes) const {
    Fd memory(use_memfd_ ? ::memfd_create(name_.c_str(), MFD_CLOEXEC) : -1);
    if (memory.valid()) return memory;
    return open_unlinked_file(name_, bytes);
  }

  const bool use_memfd_;
  const std::string name_;
};

}  // namespace

SharedMemoryDriver& real_shared_memory() {
  static RealSharedMemory driver(true);
  return driver;
}

SharedMemoryDriver& dev_shm_shared_memory() {
  static RealSharedMemory driver(false);
  return driver;
}

std::unique_ptr<SharedMemoryDriver> named_shared_memory(std::string name) {
  return std::make_unique<RealSharedMemory>(true, std::move(name));
}

Result<Fd> create_private_file(const std::string& path, std::size_t bytes) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) {
    return system_failure(fmt::format("cannot create {}", path), errno);
  }
  const Status taken = take_pages(file, bytes);
  if (taken.is_ok()) return file;
  ::unlink(path.c_str());
  return taken.with_context(path);
}

Result<Fd> make_sealed_memory(ByteView content) {
  Fd memory(::memfd_create("tutti-sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.valid()) return failure("open", content.size(), errno);
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  if (const int error = write_all(memory.get(), text); error != 0) {
    return failure("write", content.size(), error);
  }
  if (::fcntl(memory.get(), F_ADD_SEALS,
              F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return failure("seal", content.size(), errno);
  }
  return memory;
}

Result<Bytes> read_sealed_memory(int fd, std::size_t max_bytes) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_WRITE) == 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("descriptor {} is no sealed memory{}", fd,
                              seals < 0 && errno == EBADF ? ": it is not open here" : ""));
  }
  Bytes content(max_bytes + 1);
  const ssize_t bytes = ::pread(fd, content.data(), content.size(), 0);
  if (bytes < 0) return failure("read", max_bytes, errno);
  if (static_cast<std::size_t>(bytes) > max_bytes) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("descriptor {} holds more than {} bytes", fd, max_bytes));
  }
  content.resize(static_cast<std::size_t>(bytes));
  return content;
}

}  // namespace tutti
