#include "group/recorder/find_pages.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/fd.hpp"
#include "base/names.hpp"
#include "base/try.hpp"
#include "drivers/processes.hpp"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr Name<WriterState> kWriterStates[] = {{WriterState::kUnknown, "unknown"},
                                               {WriterState::kRunning, "running"},
                                               {WriterState::kStopped, "stopped"},
                                               {WriterState::kEnded, "ended"}};

bool read_exactly(int fd, std::span<std::byte> into, std::size_t offset) {
  return ::pread(fd, into.data(), into.size(), static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(into.size());
}

// Reads until two readings are equal: what they hold was all there when the second began. False
// where it never holds still.
Result<bool> read_steady(int fd, std::span<std::byte> into, std::size_t offset) {
  constexpr int kReadings = 10;
  Bytes before(into.size());
  for (int reading = 0; reading < kReadings; ++reading) {
    if (!read_exactly(fd, into, offset)) {
      return Status(StatusCode::kUnavailable, "it cannot be read, or is too short");
    }
    if (reading > 0 && std::equal(into.begin(), into.end(), before.begin())) return true;
    std::copy(into.begin(), into.end(), before.begin());
  }
  return false;
}

Result<Snapshot> read_and_parse(int fd) {
  TUTTI_ASSIGN(const Bytes bytes, read_page(fd));
  return parse_page(bytes);
}

WriterState state_of(std::int64_t process, std::uint64_t start) {
  const auto facts = process_facts(static_cast<pid_t>(process));
  if (!facts || facts->start != start || facts->ended()) return WriterState::kEnded;
  const bool stopped = facts->state == 'T' || facts->state == 't';
  return stopped ? WriterState::kStopped : WriterState::kRunning;
}

FoundPages sorted(FoundPages found) {
  std::sort(found.pages.begin(), found.pages.end(), [](const FoundPage& a, const FoundPage& b) {
    return std::tie(a.page.group, a.page.rank) < std::tie(b.page.group, b.page.rank);
  });
  return found;
}

}  // namespace

std::string_view to_string(WriterState state) { return name_of<WriterState>(kWriterStates, state); }

Result<Bytes> read_page(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size != static_cast<off_t>(kPageBytes)) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("{} bytes are not the size of a page", info.st_size));
  }
  Bytes bytes(kPageBytes);
  const std::span<std::byte> all(bytes);
  TUTTI_ASSIGN(const bool steady, read_steady(fd, all.first(sizeof(PageHeader)), 0));
  if (!steady) return Status(StatusCode::kUnavailable, "its header does not hold still");
  for (std::size_t at = sizeof(PageHeader); at < kPageBytes; at += sizeof(PageRecord)) {
    const auto record = all.subspan(at, sizeof(PageRecord));
    TUTTI_ASSIGN(const bool whole, read_steady(fd, record, at));
    if (!whole) std::fill(record.begin(), record.end(), std::byte{0});
  }
  return bytes;
}

FoundPages pages_of_processes() {
  FoundPages found;
  std::map<std::pair<dev_t, ino_t>, std::size_t> known;  // a forked child has its parent's pages
  for (const OpenDescriptor& descriptor : descriptors_with(kPageName)) {
    const Fd file(::open(descriptor.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info {};
    if (!file.valid() || ::fstat(file.get(), &info) != 0) continue;  // gone meanwhile
    const auto [entry, is_new] = known.try_emplace({info.st_dev, info.st_ino}, found.pages.size());
    if (is_new) {
      auto page = read_and_parse(file.get());
      if (!page.is_ok()) {
        found.refused.push_back(fmt::format("{}: {}", descriptor.path, page.status().message()));
        known.erase(entry);
        continue;
      }
      found.pages.push_back({.page = std::move(*page), .writer = WriterState::kEnded});
    }
    FoundPage& page = found.pages[entry->second];
    const WriterState state = state_of(descriptor.process, page.page.process_start);
    if (state == WriterState::kEnded) continue;
    page.writer = state;
    page.page.process_id = descriptor.process;  // as it is called here, outside its container
  }
  return sorted(std::move(found));
}

Result<FoundPages> pages_in_folder(const std::string& folder, std::uint64_t host_id) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{} is no folder", folder));
  }
  FoundPages found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!at->path().filename().native().starts_with(kPageName)) continue;
    const Fd file(::open(at->path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    auto page = read_and_parse(file.get());
    if (!page.is_ok()) {
      found.refused.push_back(fmt::format("{}: {}", at->path().native(), page.status().message()));
      continue;
    }
    FoundPage made{.page = std::move(*page)};
    if (made.page.host_id == host_id) {
      made.writer = state_of(made.page.process_id, made.page.process_start);
    }
    found.pages.push_back(std::move(made));
  }
  return sorted(std::move(found));
}

}  // namespace tutti
