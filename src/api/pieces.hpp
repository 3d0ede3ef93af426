// Calls of collectives that have a piece of every rank on one side, or on both.
#pragma once

#include "api/group.hpp"

namespace tutti {

// `call.count` is of one piece, as the user gave it. kInvalidArgument says what can be seen to be
// wrong without asking anybody. Equal arguments give equal answers on every rank, so that a refused
// call leaves the communicator usable.
Status submit_pieces(Communicator& communicator, Call call);

}  // namespace tutti
