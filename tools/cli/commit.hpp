// Which sources this command was built from.
#pragma once

#include <string>

namespace tutti::cli {

// "be2dd1e4f3a2"; "be2dd1e4f3a2-dirty" where sources differed from it; "unknown" where the build
// saw no repository.
std::string commit();

}  // namespace tutti::cli
