#include "drivers/dynamic_library.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <link.h>

namespace tutti {

Result<DynamicLibrary> DynamicLibrary::open_with(const std::string& name, int flags) {
  // The loader would wait for whoever writes to a FIFO.
  struct stat there {};
  const bool is_path = name.find('/') != std::string::npos;
  if (is_path && ::stat(name.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return Status(StatusCode::kUnavailable, fmt::format("{}: it is no file", name));
  }
  ::dlerror();  // forgets an older failure
  if (void* handle = ::dlopen(name.c_str(), flags)) return DynamicLibrary(handle);
  const char* reason = ::dlerror();  // null under RTLD_NOLOAD
  return Status(StatusCode::kUnavailable, reason ? reason : fmt::format("{} is not loaded", name));
}

Result<DynamicLibrary> DynamicLibrary::open(const std::string& name) {
  return open_with(name, RTLD_NOW | RTLD_LOCAL);
}

Result<DynamicLibrary> DynamicLibrary::open_loaded(const std::string& soname) {
  return open_with(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
}

void* DynamicLibrary::address_of(const char* symbol) const { return ::dlsym(handle_, symbol); }

std::string DynamicLibrary::path() const {
  link_map* map = nullptr;
  if (::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return {};
  return map->l_name;
}

}  // namespace tutti
