// The team that host bodies are compiled for. A build of the bodies with TUTTI_SIMULATED gets the
// one whose ranks are fibers over a weak memory; it is for tests and never part of the library.
#pragma once

#if defined(TUTTI_SIMULATED)
#include "transport/host_simulated/host_team.hpp"
#else
#include "transport/host_shared/host_team.hpp"
#endif
