// Matrix products of one rank.
#include "tutti/matmul.hpp"

#include "base/guard.hpp"
#include "matmul/engine.hpp"

namespace tutti {

Status matmul(Stream stream, const Matmul& call) {
  return guarded([&] { return matmul_engine().run(stream, call); });
}

Result<MatmulPlan> plan(const Matmul& call) {
  return guarded([&] { return matmul_engine().plan(call); });
}

Result<MatmulPlan> tune(Stream stream, const Matmul& call) {
  return guarded([&] { return matmul_engine().tune(stream, call); });
}

Result<std::string> explain(const Matmul& call) {
  return guarded([&] { return matmul_engine().explain(call); });
}

}  // namespace tutti
