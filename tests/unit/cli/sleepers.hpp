// Processes that ranks start and that must not outlive them.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "scratch_folder.hpp"
#include "support/patience.hpp"

namespace tutti::cli {

class Sleepers {
 public:
  // A script that starts one, and waits for it.
  std::string script() const { return "sleep 3600 & echo $! >> " + folder_ / "pids" + "; wait"; }

  void await(std::size_t count) const {
    while (pids().size() < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::size_t count() const { return pids().size(); }

  bool are_gone_within(std::chrono::seconds patience) const {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (std::ranges::any_of(pids(), is_there)) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  std::vector<pid_t> pids() const {
    std::ifstream in(folder_ / "pids");
    return {std::istream_iterator<pid_t>(in), {}};
  }
  // An orphan that has ended may stay until whoever took it over reaps it.
  static bool is_there(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    return (stat >> number >> name >> state) && state != "Z";
  }

  ScratchFolder folder_;
};

}  // namespace tutti::cli
