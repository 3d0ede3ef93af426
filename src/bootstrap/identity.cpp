#include "bootstrap/identity.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <string>

#include "base/host_name.hpp"
#include "drivers/host_files.hpp"

namespace tutti {
namespace {

std::string link_target(const char* path) {
  std::array<char, 64> text{};
  const ssize_t length = ::readlink(path, text.data(), text.size());
  return length <= 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(length));
}

std::uint64_t read_host_id() {
  std::string host = kernel_text("/proc/sys/kernel/random/boot_id");
  if (host.empty()) host = host_name();
  Sha256 hash;
  for (const std::string& part :
       {host, link_target("/proc/self/ns/pid"), link_target("/proc/self/ns/ipc")}) {
    hash.add(view_of(part)).add(view_of("\n"));
  }
  return first_word(hash.finish());
}

}  // namespace

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
    identity.process_id = ::getpid();
    // Without random bytes the process id must do: unique on one host, as long as it lives.
    identity.process_token =
        token.is_ok() ? first_word(*token) : static_cast<std::uint64_t>(identity.process_id);
  }
  return identity;
}

bool all_on_one_host(const std::vector<PeerIdentity>& identities) {
  return std::all_of(identities.begin(), identities.end(), [&](const PeerIdentity& identity) {
    return identity.host_id == identities.front().host_id;
  });
}

}  // namespace tutti
