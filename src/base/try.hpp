// Early returns for Status and Result.
#pragma once

#include "tutti/status.hpp"

#define TUTTI_CONCAT_(a, b) a##b
#define TUTTI_CONCAT(a, b) TUTTI_CONCAT_(a, b)

// Returns the Status of `expression` from this function if it is a failure.
#define TUTTI_TRY(expression)                         \
  do {                                                \
    ::tutti::Status tutti_status_ = (expression);     \
    if (!tutti_status_.is_ok()) return tutti_status_; \
  } while (false)

// TUTTI_ASSIGN(auto heap, Heap::create(...)): binds the value, or returns the failure.
#define TUTTI_ASSIGN(declaration, expression)                \
  auto TUTTI_CONCAT(tutti_result_, __LINE__) = (expression); \
  if (!TUTTI_CONCAT(tutti_result_, __LINE__).is_ok())        \
    return TUTTI_CONCAT(tutti_result_, __LINE__).status();   \
  declaration = std::move(TUTTI_CONCAT(tutti_result_, __LINE__)).value()
