#include "base/host_name.hpp"

#include <unistd.h>

namespace tutti {

std::string host_name() {
  char name[256] = {};  // POSIX allows 255 and need not end them with a zero
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

}  // namespace tutti
