// Groups whose ranks all live in this process.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "group/communicator_impl.hpp"

namespace tutti {

// One rank per element of `devices`, each made on a thread of its own. Element r is rank r's CUDA
// ordinal; -1: rank r modulo the number of GPUs. `options.device` is ignored.
Result<std::vector<std::unique_ptr<CommunicatorImpl>>> create_in_process(
    std::span<const int> devices, const CommunicatorOptions& options, const Drivers& drivers);

}  // namespace tutti
