#include "drivers/processes.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <system_error>

#include "drivers/host_files.hpp"

namespace tutti {
namespace {

namespace fs = std::filesystem;

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

// The names in a folder of /proc that are numbers. Processes come and go meanwhile.
template <class F>
void for_each_number(const std::string& folder, F&& f) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const auto number = whole_number<pid_t>(at->path().filename().native());
    if (number) f(*number);
  }
}

bool is_own(const std::string& folder) {
  struct stat info {};
  return ::stat(folder.c_str(), &info) == 0 && info.st_uid == ::geteuid();
}

}  // namespace

std::optional<ProcessFacts> parse_process_facts(std::string_view stat) {
  // "17 (any (name) at all) S 1 17 ...": the state is field 3.
  constexpr int kThreads = 20 - 3, kStart = 22 - 3;  // so many fields after it
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || stat.size() < name_end + 3) return std::nullopt;
  ProcessFacts facts;
  facts.state = stat[name_end + 2];
  std::string_view rest = stat.substr(name_end + 2);
  std::optional<int> threads;
  for (int field = 0; field < kStart; ++field) {
    if (field == kThreads) threads = whole_number<int>(rest.substr(0, rest.find(' ')));
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(space + 1);
  }
  const auto start = whole_number<std::uint64_t>(rest.substr(0, rest.find(' ')));
  if (!start || !threads) return std::nullopt;
  facts.threads = *threads;
  facts.start = *start;
  return facts;
}

std::optional<ProcessFacts> process_facts(pid_t process) {
  return parse_process_facts(kernel_text(fmt::format("/proc/{}/stat", process)));
}

bool ProcessFacts::ended() const { return state == 'X' || (state == 'Z' && threads <= 1); }

bool has_ended(pid_t process, std::uint64_t start) {
  const auto facts = process_facts(process);
  return !facts || facts->start != start || facts->ended();
}

std::vector<OpenDescriptor> descriptors_with(std::string_view text) {
  std::vector<OpenDescriptor> found;
  for_each_number("/proc", [&](pid_t process) {
    if (!is_own(fmt::format("/proc/{}", process))) return;
    for_each_number(fmt::format("/proc/{}/fd", process), [&](int descriptor) {
      std::string path = fmt::format("/proc/{}/fd/{}", process, descriptor);
      std::error_code error;
      const std::string target = fs::read_symlink(path, error).native();
      if (!error && target.find(text) != std::string::npos) {
        found.push_back({.process = process, .path = std::move(path)});
      }
    });
  });
  return found;
}

}  // namespace tutti
