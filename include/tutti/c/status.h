/// \file
/// How the C API reports failures: a code that each function returns, and a record per thread.
#pragma once

#include <stdint.h>

#include "tutti/c/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What each function returns. The numbers are those of tutti::StatusCode. Every failure that
/// tutti_communicator_status() returns has ended the communicator.
typedef int tutti_status_t;
enum {
  TUTTI_OK = 0,
  TUTTI_INVALID_ARGUMENT = 1,    ///< nothing was done, the communicator stays usable
  TUTTI_UNSUPPORTED = 2,         ///< valid, but this machine, build or algorithm cannot do it
  TUTTI_UNAVAILABLE = 3,         ///< a library, device or peer is missing
  TUTTI_TIMEOUT = 4,             ///< a timeout passed; ends the communicator
  TUTTI_PEER_FAILED = 5,         ///< a peer's process ended or failed; ends the communicator
  TUTTI_MISMATCH = 6,            ///< ranks disagree; ends the communicator
  TUTTI_ABORTED = 7,             ///< aborted here or on a peer; ends the communicator
  TUTTI_RESOURCE_EXHAUSTED = 8,  ///< out of memory, descriptors, shared memory or channels
  TUTTI_PERMISSION = 9,          ///< a peer did not prove that it belongs to the group
  TUTTI_SYSTEM = 10,             ///< the operating system failed
  TUTTI_CUDA = 11,               ///< CUDA failed; ends the communicator
  TUTTI_NCCL = 12,               ///< NCCL failed; ends the communicator
  TUTTI_INTERNAL = 13            ///< a defect in tutti; ends the communicator
};

/// A failure. Ranks are -1, numbers 0 and the operation empty where they are not known.
typedef struct tutti_failure_t {
  size_t size;
  tutti_status_t code;
  int waiting_rank;       ///< the rank whose wait failed, or was ended by the failure
  int missing_rank;       ///< the rank that it waited for
  int failed_rank;        ///< the rank that told this one of the failure, or whose process ended
  uint64_t sequence;      ///< number of the operation in its communicator, from 1
  uint64_t expected;      ///< flag, signal, signature or count that the wait expected
  uint64_t seen;          ///< what it saw instead
  const char* text;       ///< what happened, and what to do about it
  const char* operation;  ///< "all_reduce/two_shot #42 (1048576 x bf16, sum)"
} tutti_failure_t;
TUTTI_STRUCT_INIT(failure, value.waiting_rank = value.missing_rank = value.failed_rank = -1;)

/// The latest failure of a call of this thread; TUTTI_OK in `code` if none has failed. Calls that
/// succeed do not change it. Its strings are valid until the next call of this thread that fails,
/// or asks tutti_communicator_failure().
TUTTI_API tutti_status_t tutti_last_failure(tutti_failure_t* failure);

/// `text` of tutti_last_failure(), never null.
TUTTI_API const char* tutti_last_error(void);

/// "timeout", "peer failed", ...; "?" for another number.
TUTTI_API const char* tutti_status_name(tutti_status_t status);

/// Frees a string that a function has returned as `char*`. Null: nothing happens.
TUTTI_API void tutti_string_free(char* string);

/// The version of the library that this program runs with, "major.minor.patch".
TUTTI_API const char* tutti_version(void);

#ifdef __cplusplus
}
#endif
