#include "drivers/ucx_library.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <glob.h>
#include <list>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/try.hpp"

namespace tutti {
namespace {

constexpr const char* kUcxSoname = "libucp.so.0";
constexpr const char* kUcxPackage = "libucx0, or pip's libucx-cu12 and libucx-cu13";
constexpr unsigned kFirstUcxMajor = 1, kFirstUcxMinor = 13;

// What UCX reads once, while it is loaded. A variable that it does not use may be tutti's own
// (UCX_TCP_CONN_NB), of which a user need not hear. Without hooks its cache of memory types stays
// empty, and what the cache does not have would be read as memory of the host.
constexpr const char* kUcxLoadSettings[] = {
    "UCX_HANDLE_ERRORS=none",      "UCX_DEBUG_SIGNO=0",   "UCX_VFS_ENABLE=n",
    "UCX_WARN_UNUSED_ENV_VARS=n",  "UCX_MEMTYPE_CACHE=n", "UCX_MEM_MMAP_HOOK_MODE=none",
    "UCX_MEM_CUDA_HOOK_MODE=none",
};

// Where Python packages are, below which UCX's are: its own, and the one inside of nixl.
constexpr const char* kUcxPackageFolders[] = {"/lib/python3*/site-packages/",
                                              "/lib/python3*/dist-packages/",
                                              "/local/lib/python3*/dist-packages/"};
constexpr const char* kUcxInPackages[] = {"libucx/lib/libucp.so.0", "nixl_cu1?.libs/libucp*.so*",
                                          ".nixl_cu1?.mesonpy.libs/libucp*.so*"};

std::vector<std::string> prefixes_of_python() {
  std::vector<std::string> prefixes;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* value = std::getenv(name)) prefixes.emplace_back(value);
  }
  if (const char* home = std::getenv("HOME")) prefixes.push_back(std::string(home) + "/.local");
  prefixes.insert(prefixes.end(), {"/usr/local", "/usr"});
  return prefixes;
}

std::vector<std::string> files_of_packages() {
  std::vector<std::string> files;
  for (const std::string& prefix : prefixes_of_python()) {
    for (const char* folder : kUcxPackageFolders) {
      for (const char* file : kUcxInPackages) {
        glob_t found = {};
        if (::glob((prefix + folder + file).c_str(), 0, nullptr, &found) == 0)
          files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
        ::globfree(&found);
      }
    }
  }
  return files;
}

// "cma" of libuct_cma.so.0, in the folder "ucx" beside the library.
std::vector<std::string> modules_beside(const std::string& library) {
  constexpr std::string_view kPrefix = "libuct_";
  std::vector<std::string> modules;
  std::error_code error;
  std::filesystem::directory_iterator at(std::filesystem::path(library).parent_path() / "ucx",
                                         error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename();
    const std::size_t end = std::min(name.find_first_of("-."), name.size());
    if (!name.starts_with(kPrefix) || name.find(".so") == std::string::npos) continue;
    modules.push_back(name.substr(kPrefix.size(), end - kPrefix.size()));
  }
  std::sort(modules.begin(), modules.end());
  modules.erase(std::unique(modules.begin(), modules.end()), modules.end());
  return modules;
}

Status take_calls(const DynamicLibrary& library, UcxCalls& calls) {
  std::string missing;
  library.require("ucp_config_read", calls.config_read, missing);
  library.require("ucp_config_modify", calls.config_modify, missing);
  library.require("ucp_config_release", calls.config_release, missing);
  library.require("ucp_init_version", calls.init_version, missing);
  library.require("ucp_cleanup", calls.cleanup, missing);
  library.require("ucp_context_query", calls.context_query, missing);
  library.require("ucp_worker_create", calls.worker_create, missing);
  library.require("ucp_worker_destroy", calls.worker_destroy, missing);
  library.require("ucp_worker_get_address", calls.worker_get_address, missing);
  library.require("ucp_worker_release_address", calls.worker_release_address, missing);
  library.require("ucp_worker_progress", calls.worker_progress, missing);
  library.require("ucp_worker_get_efd", calls.worker_get_efd, missing);
  library.require("ucp_worker_arm", calls.worker_arm, missing);
  library.require("ucp_worker_set_am_recv_handler", calls.set_handler, missing);
  library.require("ucp_ep_create", calls.ep_create, missing);
  library.require("ucp_ep_close_nbx", calls.ep_close, missing);
  library.require("ucp_am_send_nbx", calls.send, missing);
  library.require("ucp_am_recv_data_nbx", calls.receive, missing);
  library.require("ucp_request_check_status", calls.request_status, missing);
  library.require("ucp_request_free", calls.request_free, missing);
  if (missing.empty()) return {};
  return {StatusCode::kUnavailable, fmt::format("{} has no {}", library.path(), missing)};
}

Result<UcxLibrary> accept_ucx(const DynamicLibrary& library) {
  UcxLibrary found;
  found.path = library.path();
  std::string missing;
  library.require("ucp_get_version", found.calls.get_version, missing);
  library.require("ucp_get_version_string", found.calls.get_version_string, missing);
  if (!missing.empty()) {
    return Status(StatusCode::kUnavailable, fmt::format("{} has no {}", found.path, missing));
  }
  unsigned major = 0, minor = 0, release = 0;
  found.calls.get_version(&major, &minor, &release);
  if (std::pair(major, minor) < std::pair(kFirstUcxMajor, kFirstUcxMinor)) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("{} is version {}.{}.{}: it takes {}.{}.0 or newer", found.path,
                              major, minor, release, kFirstUcxMajor, kFirstUcxMinor));
  }
  // The text says more than the numbers where it is no release.
  const char* text = found.calls.get_version_string();
  found.version = text != nullptr && *text != '\0' ? std::string(text)
                                                   : fmt::format("{}.{}.{}", major, minor, release);
  TUTTI_TRY(take_calls(library, found.calls));
  found.modules = modules_beside(found.path);
  return found;
}

// One at a time: two would take each other's environment for the one before.
std::mutex& loading() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

MoreEnvironment::MoreEnvironment(std::span<const char* const> extra) {
  std::vector<char*> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    all.push_back(*entry);
  for (const char* one : extra) {
    const std::string name(one, std::strchr(one, '='));
    if (std::getenv(name.c_str()) == nullptr) all.push_back(const_cast<char*>(one));
  }
  all.push_back(nullptr);
  // Never freed: whoever reads the environment may still be at it.
  static auto* const kept = new std::list<std::vector<char*>>;
  static std::mutex keeping;
  const std::lock_guard lock(keeping);
  ours_ = kept->emplace_back(std::move(all)).data();
  before_ = std::atomic_ref<char**>(environ).exchange(ours_);
}

MoreEnvironment::~MoreEnvironment() {
  char** expected = ours_;
  std::atomic_ref<char**>(environ).compare_exchange_strong(expected, before_);
}

Result<UcxLibrary> load_ucx(const std::string& name) {
  const std::lock_guard lock(loading());
  const auto open = [&name]() -> Result<DynamicLibrary> {
    if (Result<DynamicLibrary> loaded = DynamicLibrary::open_loaded(name)) return loaded;
    const MoreEnvironment settings(kUcxLoadSettings);
    return DynamicLibrary::open(name);
  };
  TUTTI_ASSIGN(const DynamicLibrary library, open());
  return accept_ucx(library);
}

Result<UcxLibrary> find_ucx(const std::string& configured) {
  if (!configured.empty()) {
    Result<UcxLibrary> named = load_ucx(configured);
    if (named.is_ok()) return named;
    return Status(
        StatusCode::kUnavailable,
        fmt::format("TUTTI_UCX_LIBRARY={} cannot be used ({}): name the file {}, or unset "
                    "it to search",
                    configured, named.status().message(), kUcxSoname));
  }
  Result<UcxLibrary> found = load_ucx(kUcxSoname);
  std::string tried = found.is_ok() ? "" : found.status().message();
  for (const std::string& file : found.is_ok() ? std::vector<std::string>{} : files_of_packages()) {
    found = load_ucx(file);
    if (found.is_ok()) break;
    tried += "; " + found.status().message();
  }
  if (found.is_ok()) return found;
  return Status(
      StatusCode::kUnavailable,
      fmt::format("no UCX ({}): {} has it, or TUTTI_UCX_LIBRARY names it", tried, kUcxPackage));
}

}  // namespace tutti
