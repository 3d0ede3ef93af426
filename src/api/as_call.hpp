// What the structs of all collectives have in common.
#pragma once

#include "operation/call.hpp"

namespace tutti {

// A count, a root and an operation only where the user's struct has them.
template <class UsersCall>
Call as_call(Collective collective, const UsersCall& call) {
  Call result{.collective = collective,
              .input = call.input,
              .output = call.output,
              .dtype = call.dtype,
              .stream = call.stream,
              .options = call.options};
  if constexpr (requires { call.count; }) result.count = call.count;
  if constexpr (requires { call.op; }) result.op = call.op;
  if constexpr (requires { call.root; }) result.root = call.root;
  return result;
}

}  // namespace tutti
