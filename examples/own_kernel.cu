// The same program on GPUs: one rank on each.
#include "own_kernel.cpp"
