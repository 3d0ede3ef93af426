// How a checked call gets to its communicator: at once, or noted between group_start and group_end.
#pragma once

#include "communicator/call.hpp"
#include "tutti/communicator.hpp"

namespace tutti {

Status submit(Communicator& communicator, const Call& call);

}  // namespace tutti
