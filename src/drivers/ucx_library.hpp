// UCX as a library that may be there, found at run time: TUTTI_UCX_LIBRARY, or else libucp.so.0
// (also one that this process has loaded already), or else those that pip installs (libucx-cu12,
// libucx-cu13, and the one inside of nixl).
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/dynamic_library.hpp"
#include "drivers/ucx_api.hpp"
#include "tutti/status.hpp"

namespace tutti {

struct UcxLibrary {
  std::string path;
  std::string version;  // its own words: "1.13.1"
  // What it has besides TCP and shared memory: names of modules beside it, "cma", "cuda", "ib",
  // "rdmacm". Whether this machine has what they are for, only a wire finds out.
  std::vector<std::string> modules;
  UcxCalls calls;

  bool has_module(std::string_view name) const {
    return std::find(modules.begin(), modules.end(), name) != modules.end();
  }
};

// `configured` is TUTTI_UCX_LIBRARY; empty: the search. kUnavailable says what was tried, what is
// wrong with it, and which package has it.
//
// UCX reads some settings when it is loaded, and none later: they are given to it in the
// environment, which is as before afterwards. With them it leaves signals, mmap and CUDA's
// functions alone, starts no thread for its file system, and does not warn of variables that it
// does not use. What the environment says already remains. A UCX that something else has loaded has
// its own.
Result<UcxLibrary> find_ucx(const std::string& configured);

// The same in one file, or under one name that the loader finds.
Result<UcxLibrary> load_ucx(const std::string& library);

// The environment has `extra` ("NAME=value") as well, where it does not name them already, until
// this ends; then it is as before, unless another thread has changed it meanwhile. Other threads
// may read it all the time: they see the one or the other, and no memory is freed.
class MoreEnvironment {
 public:
  explicit MoreEnvironment(std::span<const char* const> extra);
  ~MoreEnvironment();
  MoreEnvironment(const MoreEnvironment&) = delete;
  MoreEnvironment& operator=(const MoreEnvironment&) = delete;

 private:
  char** before_ = nullptr;
  char** ours_ = nullptr;
};

}  // namespace tutti
