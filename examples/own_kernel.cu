// The same program on GPUs, one rank per GPU.
#include "own_kernel.cpp"
