// `tutti status`.
#pragma once

#include <string>

namespace tutti::cli {

struct StatusArguments {
  std::string merge;     // folder of pages; empty: the groups that run now
  std::string group;     // how its name begins; empty: all
  std::string patience;  // seconds; empty: 5
  std::string operations;
  bool json = false;
};

// 0 where every group is healthy or there is none, 1 where a rank is stopped or gone, or a group
// waits for too long or has failed, 2 where what was asked cannot be right, or a folder holds no
// page.
int run_status(const StatusArguments& arguments);

}  // namespace tutti::cli
