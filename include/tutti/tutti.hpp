/// \file
/// The whole host API.
#pragma once

#include "tutti/all_gather_matmul.hpp"   // IWYU pragma: export
#include "tutti/collectives.hpp"         // IWYU pragma: export
#include "tutti/communicator.hpp"        // IWYU pragma: export
#include "tutti/export.hpp"              // IWYU pragma: export
#include "tutti/local_memory.hpp"        // IWYU pragma: export
#include "tutti/matmul.hpp"              // IWYU pragma: export
#include "tutti/one_sided.hpp"           // IWYU pragma: export
#include "tutti/sharded_parameters.hpp"  // IWYU pragma: export
#include "tutti/status.hpp"              // IWYU pragma: export
#include "tutti/symmetric_memory.hpp"    // IWYU pragma: export
#include "tutti/symmetric_pool.hpp"      // IWYU pragma: export
#include "tutti/tuning.hpp"              // IWYU pragma: export
#include "tutti/typed.hpp"               // IWYU pragma: export
#include "tutti/types.hpp"               // IWYU pragma: export
#include "tutti/version.hpp"             // IWYU pragma: export
