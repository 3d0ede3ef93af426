// Whether all ranks have come so far.
#pragma once

#include "base/deadline.hpp"
#include "tutti/status.hpp"

namespace tutti {

class Bootstrap;

// Collective. The same answer on every rank: ok if `mine` is ok on all, otherwise kUnavailable with
// the name of the first rank that failed and its message.
Status agree(Bootstrap& bootstrap, const Status& mine, Deadline deadline);

}  // namespace tutti
