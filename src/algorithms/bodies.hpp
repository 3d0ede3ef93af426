// What the bodies of rows are to the catalogue: pointers. Kernels see no more of it than this, so
// that they are not compiled again when it changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tutti/types.hpp"

namespace tutti {

struct Algorithm;   // algorithms/catalogue.hpp
struct KernelArgs;  // device/kernel_args.hpp
class HostTeam;     // device/host_shared/host_team.hpp
class Stages;       // device/copy_engine/stages.hpp
enum class Outcome : std::uint8_t;

// A body instantiated for one team, element type and reduction.
template <class Team>
using BodyOf = Outcome (*)(Team& team, const KernelArgs& work);
using HostBody = BodyOf<HostTeam>;
using CudaKernel = const void*;  // __global__ void(KernelArgs), KernelArgs by value

// A body that copy engines run with kernels in between, enqueued by the host.
using EngineProgram = void (*)(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

}  // namespace tutti
