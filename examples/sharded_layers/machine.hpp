// What the example needs of a rank's machine: memory, a stream, and a matrix product.
#pragma once

#include <tutti/tutti.hpp>

#include <cstddef>
#include <memory>
#include <vector>

// c [m, n] = a [m, k] x b [k, n], row-major and without gaps. What is transposed lies in memory as
// [k, m] or [n, k]. `add`: c += instead.
struct Product {
  const void* a;
  const void* b;
  void* c;
  std::size_t m, n, k;
  bool a_transposed = false, b_transposed = false, add = false;
};

// Of one rank, for its thread. Throws where something cannot be had.
class Machine {
 public:
  virtual ~Machine() = default;

  virtual tutti::DataType dtype() const = 0;         // of all matrices
  virtual tutti::Stream stream() const = 0;          // of all that is computed
  virtual void* allocate(std::size_t elements) = 0;  // zeros; ends with the machine
  virtual void write(void* to, const std::vector<float>& values) = 0;
  virtual std::vector<float> read(const void* from, std::size_t elements) = 0;
  virtual void multiply(const Product& product) = 0;  // in the stream's order
  virtual void wait() = 0;                            // for the stream
};

std::unique_ptr<Machine> make_host_machine();            // fp32, plain loops
std::unique_ptr<Machine> make_cuda_machine(int device);  // bf16, cuBLAS
