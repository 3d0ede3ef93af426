// The programs of all_reduce whose bytes copy engines move.
#pragma once

#include "algorithms/all_reduce/rows.hpp"
#include "algorithms/host_program.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_all_reduce_one_shot_copy_engine(DataType dtype, OpKind op) {
  return host_program<Team, all_reduce_one_shot_copy_engine>(dtype, op);
}

template <class Team>
BodyOf<Team> host_all_reduce_two_shot_copy_engine(DataType dtype, OpKind op) {
  return host_program<Team, all_reduce_two_shot_copy_engine>(dtype, op);
}

}  // namespace tutti
