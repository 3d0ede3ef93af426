#include "algorithms/all_reduce/copy_engine.hpp"

#include "algorithms/all_reduce/rows.hpp"
#include "algorithms/host_program.hpp"

namespace tutti {

HostBody host_all_reduce_one_shot_copy_engine(DataType dtype, OpKind op) {
  return host_program<all_reduce_one_shot_copy_engine>(dtype, op);
}

HostBody host_all_reduce_two_shot_copy_engine(DataType dtype, OpKind op) {
  return host_program<all_reduce_two_shot_copy_engine>(dtype, op);
}

}  // namespace tutti
