#include "bootstrap/left_behind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "bootstrap/bootstrap.hpp"
#include "bootstrap/job_directory.hpp"
#include "bootstrap/private_directory.hpp"
#include "drivers/host_files.hpp"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGroupStart = "tutti-", kJobStart = "tutti-job-";
constexpr std::chrono::seconds kStarting{60};

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().native());
  }
  return names;
}

bool may_be_starting(const std::string& folder) {
  std::error_code error;
  const auto changed = fs::last_write_time(folder, error);
  return error || fs::file_time_type::clock::now() - changed < kStarting;
}

// "r12"
bool is_socket_of_a_rank(std::string_view name) {
  return name.size() > 1 && name.front() == 'r' &&
         name.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

class Sweep {
 public:
  Sweep(SocketDriver& sockets, std::string base) : sockets_(sockets), base_(std::move(base)) {}

  void group(const std::string& name) {
    const std::string place = base_ + "/" + name;
    if (!check_private_directory(place).is_ok()) return;
    // A rank that starts makes the directory, then its socket, and listens at it last: before that
    // it looks dead.
    if (may_be_starting(place)) return;
    const std::vector<std::string> found = names_in(place);
    if (!all_dead(place, found)) return;
    for (const std::string& socket : found) remove_file(fmt::format("{}/{}", place, socket));
    remove_directory(place);
  }

  void job(const std::string& name) {
    JobDirectory job = JobDirectory::of_name(sockets_, base_, name);
    const auto published = job.look();
    if (!published.is_ok()) return;
    std::error_code error;
    if (*published) {
      // The group's directory is made before its id is published, so it is over.
      if (!fs::exists(base_ + "/" + (*published)->address(), error) && !error) {
        job.withdraw(**published);
      }
    } else if (!may_be_starting(job.path())) {
      for (const std::string& draft : names_in(job.path())) {
        if (draft.starts_with("id.")) remove_file(job.path() + "/" + draft);
      }
      remove_directory(job.path());
    }
  }

 private:
  bool all_dead(const std::string& place, const std::vector<std::string>& found) {
    return std::all_of(found.begin(), found.end(), [&](const std::string& name) {
      return is_socket_of_a_rank(name) && !somebody_listens(place + "/" + name);
    });
  }

  // What the kernel lists is not called: the group there would take the call for a stranger's. A
  // socket of a container with a network of its own is not listed.
  bool somebody_listens(const std::string& path) {
    if (!bound_) bound_ = kernel_text("/proc/net/unix");
    if (bound_->find(fmt::format(" {}\n", path)) != std::string::npos) return true;
    const auto address = SocketAddress::unix_path(path);
    if (!address.is_ok()) return true;
    const auto call = sockets_.connect(*address);
    return call.is_ok() || call.status().code() != StatusCode::kUnavailable;
  }

  SocketDriver& sockets_;
  const std::string base_;
  std::optional<std::string> bound_;
};

}  // namespace

void remove_left_behind(SocketDriver& sockets, const std::string& base, std::string_view own) {
  Sweep sweep(sockets, base);
  std::vector<std::string> jobs;
  for (const std::string& name : names_in(base)) {
    if (name.starts_with(kJobStart)) {
      jobs.push_back(name);
    } else if (name.starts_with(kGroupStart) && name != own) {
      sweep.group(name);
    }
  }
  for (const std::string& name : jobs) sweep.job(name);
}

}  // namespace tutti
