// Programs written by hand, for tests of the engine, and what they compute.
#pragma once

#include <cstdint>

#include "algorithms/network_program.hpp"

namespace tutti::test {

NetworkProgram ring(const NetworkShape& shape);        // all_reduce, in place too
NetworkProgram direct(const NetworkShape& shape);      // all_reduce with scratch, in place too
NetworkProgram chain(const NetworkShape& shape);       // broadcast from shape.root
NetworkProgram star(const NetworkShape& shape);        // broadcast, each rank from the root itself
NetworkProgram gather(const NetworkShape& shape);      // all_gather of pieces
NetworkProgram assemble(const NetworkShape& shape);    // share r of rank r, by way of rank 0
NetworkProgram rendezvous(const NetworkShape& shape);  // nothing but messages without payload
NetworkProgram pass_on(const NetworkShape& shape);     // input to rank `root`
NetworkProgram take_from(const NetworkShape& shape);   // output from rank `root`

// Share `index` of `count` elements begins here.
std::size_t share_begin(const NetworkShape& shape, int index);

}  // namespace tutti::test
