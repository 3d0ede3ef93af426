// What an error of the system's means to a user: where a limit was reached, which one it is and
// what to do about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/status.hpp"

namespace tutti {

// kResourceExhausted where something ran out, else kSystem.
StatusCode code_of_system_error(int error);

// The system's words, and for descriptors the limit and its value: "Too many open files; this
// process may have 64 descriptors: raise the limit (ulimit -n), or close some".
std::string system_error_text(int error);

// "what: text".
Status system_failure(std::string_view what, int error,
                      std::source_location where = std::source_location::current());

// How many descriptors this process may have.
std::uint64_t descriptor_limit();

// Whether it was about descriptors, of this process or of the whole system.
bool is_lack_of_descriptors(int error);

}  // namespace tutti
