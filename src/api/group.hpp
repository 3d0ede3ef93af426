// What this thread has noted between group_start and group_end.
#pragma once

#include "tutti/collectives.hpp"

namespace tutti {

class CommunicatorImpl;

class Group {
 public:
  static bool open();
  static void add(CommunicatorImpl& communicator, const AllReduce& call);
};

}  // namespace tutti
