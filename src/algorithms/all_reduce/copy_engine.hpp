// The programs of all_reduce whose bytes copy engines move.
#pragma once

#include <cstddef>

namespace tutti {

class Stages;
struct Work;

void all_reduce_one_shot_copy_engine(Stages& stages, const Work& work, std::size_t element_bytes);
void all_reduce_two_shot_copy_engine(Stages& stages, const Work& work, std::size_t element_bytes);

}  // namespace tutti
