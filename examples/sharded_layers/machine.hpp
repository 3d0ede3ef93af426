// What the example needs from a rank's device: memory, a stream and a matrix product.
#pragma once

#include <tutti/tutti.hpp>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <vector>

// Throws, so that main() can abort the other ranks.
inline void check(const tutti::Status& status) {
  if (!status) throw std::runtime_error(status.to_string());
}

// c [m, n] = a [m, k] x b [k, n], row-major without gaps. A transposed a or b is stored as [k, m]
// or [n, k]. `add`: adds to c.
struct Product {
  const void* a;
  const void* b;
  void* c;
  std::size_t m, n, k;
  bool a_transposed = false, b_transposed = false, add = false;
};

// The device of one rank, used by its thread. Throws on failure.
class Machine {
 public:
  virtual ~Machine() = default;

  virtual tutti::DataType dtype() const = 0;         // of all matrices
  virtual tutti::Stream stream() const = 0;          // of the computation
  virtual void* allocate(std::size_t elements) = 0;  // zeros; freed with the machine
  virtual void write(void* to, const std::vector<float>& values) = 0;
  virtual std::vector<float> read(const void* from, std::size_t elements) = 0;
  virtual void multiply(const Product& product) = 0;  // in the stream's order
  virtual void wait() = 0;                            // for the stream
};

std::unique_ptr<Machine> make_host_machine();            // fp32, plain loops
std::unique_ptr<Machine> make_cuda_machine(int device);  // bf16, cuBLAS
