/// \file
/// The whole C API, for C11 and C++. It does what the C++ API does, with handles and plain structs;
/// bindings of other languages use it.
///
///     tutti_communicator_t* group;
///     if (tutti_communicator_create_from_environment(NULL, &group) != TUTTI_OK) {
///       fprintf(stderr, "%s\n", tutti_last_error());
///       exit(1);
///     }
///     tutti_all_reduce_t call = tutti_all_reduce_init();
///     call.input = x;
///     call.output = y;
///     call.count = n;
///     tutti_status_t status = tutti_all_reduce(group, &call);
///
/// **Results.** A function returns a code. What else it gives goes to its last arguments, which are
/// written if it returns TUTTI_OK. tutti_last_failure() has the text, the operation, the ranks and
/// the values of this thread's latest failure. No exception leaves a function.
///
/// **Handles.** A handle is not an address. Null, closed and foreign handles are
/// TUTTI_INVALID_ARGUMENT, as long as no other thread closes the handle at the same time. Threads
/// may use handles wherever the C++ API allows it: a communicator from any thread, one collective
/// at a time; pools, blocks and sharded parameters from one thread at a time.
///
/// **Structs.** A struct that begins with `size` may get further fields at its end in later
/// versions. tutti_NAME_init() sets `size` and the defaults of a tutti_NAME_t. The library accepts
/// what programs of other versions pass: fields that a program does not know have their defaults.
/// TUTTI_INVALID_ARGUMENT: a size of 0 or below that of the first version, or a larger struct than
/// the library knows, with a byte set that it does not know; the text names the struct and the
/// byte. Structs without `size` never change. Fields called `reserved` are 0.
///
/// **Strings.** A `char*` that a function returns is the caller's, who frees it with
/// tutti_string_free(). A `const char*` is the library's.
#pragma once

#include "tutti/c/collectives.h"         // IWYU pragma: export
#include "tutti/c/communicator.h"        // IWYU pragma: export
#include "tutti/c/export.h"              // IWYU pragma: export
#include "tutti/c/matmul.h"              // IWYU pragma: export
#include "tutti/c/memory.h"              // IWYU pragma: export
#include "tutti/c/one_sided.h"           // IWYU pragma: export
#include "tutti/c/sharded_parameters.h"  // IWYU pragma: export
#include "tutti/c/status.h"              // IWYU pragma: export
#include "tutti/c/types.h"               // IWYU pragma: export
#include "tutti/c/version.h"             // IWYU pragma: export
