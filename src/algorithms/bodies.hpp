// What the bodies of rows are to the catalogue: pointers. Kernels see no more of it than this, so
// that they are not compiled again when it changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tutti/types.hpp"

namespace tutti {

struct Algorithm;  // algorithms/catalogue.hpp
struct Work;       // transport/work.hpp
class HostTeam;    // transport/host_team.hpp
class Stages;      // transport/copy_engine/stages.hpp
enum class Outcome : std::uint8_t;

// A body instantiated for one element type and reduction.
using HostBody = Outcome (*)(HostTeam& team, const Work& work);
using CudaKernel = const void*;  // __global__ void(Work), Work by value

// A body that copy engines run with kernels in between, enqueued by the host.
using EngineProgram = void (*)(Stages& stages, const Work& work, std::size_t element_bytes);

}  // namespace tutti
