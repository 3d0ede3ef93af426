#include "bootstrap/identity.hpp"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <string>

#include "base/host_name.hpp"
#include "base/knobs.hpp"
#include "bootstrap/private_directory.hpp"
#include "drivers/host_files.hpp"
#include "drivers/processes.hpp"

namespace tutti {
namespace {

std::string link_target(const char* path) {
  std::array<char, 64> text{};
  const ssize_t length = ::readlink(path, text.data(), text.size());
  return length <= 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(length));
}

std::string this_kernel() {
  std::string boot = kernel_text("/proc/sys/kernel/random/boot_id");
  return boot.empty() ? host_name() : boot;
}

std::uint64_t read_host_id() {
  Sha256 hash;
  for (const std::string& part :
       {this_kernel(), link_target("/proc/self/ns/pid"), link_target("/proc/self/ns/ipc")}) {
    hash.add(view_of(part)).add(view_of("\n"));
  }
  return first_word(hash.finish());
}

std::uint64_t read_folder_id() {
  const auto folder = runtime_directory(Knobs::process().text("TUTTI_RUNTIME_DIR"));
  return folder.is_ok() ? folder_id_of(*folder) : 0;
}

}  // namespace

std::uint64_t folder_id_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return 0;
  // A file system of the network has its numbers on every host.
  const std::string name = fmt::format("{}\n{}:{}", this_kernel(), info.st_dev, info.st_ino);
  return first_word(sha256(view_of(name)));
}

Result<Digest> random_digest() {
  Digest digest;
  std::size_t done = 0;
  while (done < digest.size()) {
    const ssize_t got = ::getrandom(digest.data() + done, digest.size() - done, 0);
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      return Status(StatusCode::kSystem, "the system gives no random bytes (getrandom)");
    }
  }
  return digest;
}

PeerIdentity this_process() {
  static std::mutex mutex;
  static PeerIdentity identity;
  const std::lock_guard lock(mutex);
  if (identity.process_id != ::getpid()) {
    const auto token = random_digest();
    identity.host_id = read_host_id();
    identity.folder_id = read_folder_id();
    identity.process_id = ::getpid();
    host_name().copy(identity.host.data(), identity.host.size() - 1);
    identity.process_start = process_facts(::getpid()).value_or(ProcessFacts{}).start;
    // Without random bytes the process id must do: unique on one host, as long as it lives.
    identity.process_token =
        token.is_ok() ? first_word(*token) : static_cast<std::uint64_t>(identity.process_id);
  }
  return identity;
}

int ranks_of_host(const std::vector<PeerIdentity>& identities, int rank) {
  const std::uint64_t here = identities[static_cast<std::size_t>(rank)].host_id;
  return static_cast<int>(
      std::count_if(identities.begin(), identities.end(),
                    [here](const PeerIdentity& identity) { return identity.host_id == here; }));
}

bool all_can_meet(const std::vector<PeerIdentity>& identities) {
  const PeerIdentity& first = identities.front();
  return std::all_of(identities.begin(), identities.end(), [&](const PeerIdentity& identity) {
    return identity.host_id == first.host_id && identity.folder_id == first.folder_id &&
           identity.folder_id != 0;
  });
}

}  // namespace tutti
