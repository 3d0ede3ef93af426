#include "tutti/matmul.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>

#include "c/arguments.hpp"
#include "c/failure.hpp"
#include "tutti/all_gather_matmul.hpp"

namespace tutti::c {
namespace {

static_assert(TUTTI_MAX_MATMUL_PRODUCTS == kMaxMatmulProducts);

// The products of a call after the first one. One more than the library takes is enough for it to
// refuse them.
class MoreProducts {
 public:
  MoreProducts(const tutti_matmul_product_t* more, std::size_t count, Arguments& in) {
    in.check(more != nullptr || count == 0, "`more` is null, and `more_count` is not 0");
    if (more == nullptr) return;
    count_ = std::min(count, products_.size());
    std::transform(more, more + count_, products_.begin(), [](const auto& product) {
      return MatmulProduct{.b = product.b,
                           .c = product.c,
                           .bias = product.bias,
                           .n = product.n,
                           .ldb = product.ldb,
                           .ldc = product.ldc};
    });
  }
  std::span<const MatmulProduct> get() const { return std::span(products_).first(count_); }

 private:
  std::array<MatmulProduct, kMaxMatmulProducts> products_ = {};
  std::size_t count_ = 0;
};

// What both kinds of calls have.
template <class To, class From>
void read_product(const From& from, const MoreProducts& more, Arguments& in, To& to) {
  to.a = from.a;
  to.b = from.product.b;
  to.c = from.product.c;
  to.bias = from.product.bias;
  to.m = from.m;
  to.n = from.product.n;
  to.k = from.k;
  to.lda = from.lda;
  to.ldb = from.product.ldb;
  to.ldc = from.product.ldc;
  to.dtype = in.data_type(from.dtype);
  to.b_layout = in.enumerator<MatrixLayout>(from.b_layout, 2, "b_layout");
  to.more = more.get();
  to.algorithm = Arguments::text(from.algorithm);
}

AllGatherMatmulPipeline pipeline_of(const tutti_pipeline_options_t* given, Arguments& in) {
  AllGatherMatmulPipeline pipeline;
  tutti_pipeline_options_t own;
  const tutti_pipeline_options_t& from = in.read_optional(given, own);
  if (from.protocol != nullptr) pipeline.protocol = from.protocol;
  if (from.mover != nullptr) pipeline.mover = from.mover;
  pipeline.streams = from.streams;
  pipeline.tiles = from.tiles;
  pipeline.inter_stream_order = from.inter_stream_order != 0;
  return pipeline;
}

// Runs `body(call) -> Status`.
template <class Body>
Status with_call(const char* name, const tutti_matmul_t* given, Body&& body) {
  Arguments in(name);
  tutti_matmul_t own;
  const tutti_matmul_t& from = in.read(given, own);
  const MoreProducts more(from.more, from.more_count, in);
  Matmul call;
  read_product(from, more, in, call);
  call.backend = in.backend(from.backend);
  call.tile = Arguments::text(from.tile);
  return in.is_ok() ? body(call) : in.status();
}

template <class Body>
Status with_call(const char* name, const tutti_all_gather_matmul_t* given, Body&& body) {
  Arguments in(name);
  tutti_all_gather_matmul_t own;
  const tutti_all_gather_matmul_t& from = in.read(given, own);
  const MoreProducts more(from.more, from.more_count, in);
  AllGatherMatmul call;
  read_product(from, more, in, call);
  call.gathered = from.gathered;
  call.workspace = from.workspace;
  call.workspace_bytes = from.workspace_bytes;
  call.stream = from.stream;
  call.pipeline = pipeline_of(from.pipeline, in);
  if (from.transport != nullptr) call.fused.transport = from.transport;
  call.timeout = std::chrono::milliseconds(from.timeout_ms);
  return in.is_ok() ? body(call) : in.status();
}

Status check_plan(const char* name, const tutti_matmul_plan_t* out) {
  Arguments in(name);
  in.check_output(out, "plan");
  return in.status();
}

// Of a MatmulPlan or an AllGatherMatmulPlan.
template <class PlanResult>
Status give_matmul_plan(const PlanResult& made, tutti_matmul_plan_t* out) {
  if (!made.is_ok()) return made.status();
  OwnText algorithm = copy_of(made->algorithm), config = copy_of(made->config),
          why = copy_of(made->why);
  tutti_matmul_plan_t plan = tutti_matmul_plan_init();
  plan.algorithm = algorithm.release();
  plan.config = config.release();
  plan.why = why.release();
  write(plan, out);
  return Status::ok();
}

Status give_text(const char* name, const Result<std::string>& made, char** out) {
  if (out == nullptr) return invalid(name, "`text` is null");
  if (!made.is_ok()) return made.status();
  *out = copy_of(*made).release();
  return Status::ok();
}

}  // namespace
}  // namespace tutti::c

using namespace tutti::c;  // NOLINT(google-build-using-namespace)
using tutti::AllGatherMatmul;
using tutti::Matmul;
using tutti::Status;

extern "C" {

tutti_status_t tutti_matmul(tutti_stream_t stream, const tutti_matmul_t* call) {
  const char* const name = __func__;
  return run([&] {
    return with_call(name, call, [&](const Matmul& made) { return matmul(stream, made); });
  });
}
tutti_status_t tutti_matmul_plan(const tutti_matmul_t* call, tutti_matmul_plan_t* plan) {
  const char* const name = __func__;
  return run([&]() -> Status {
    if (Status checked = check_plan(name, plan); !checked.is_ok()) return checked;
    return with_call(name, call,
                     [&](const Matmul& made) { return give_matmul_plan(tutti::plan(made), plan); });
  });
}
tutti_status_t tutti_matmul_tune(tutti_stream_t stream, const tutti_matmul_t* call,
                                 tutti_matmul_plan_t* plan) {
  const char* const name = __func__;
  return run([&]() -> Status {
    tutti_matmul_plan_t unwanted = tutti_matmul_plan_init();
    if (plan != nullptr) {
      if (Status checked = check_plan(name, plan); !checked.is_ok()) return checked;
    }
    Status tuned = with_call(name, call, [&](const Matmul& made) {
      return give_matmul_plan(tune(stream, made), plan == nullptr ? &unwanted : plan);
    });
    for (char* const text : {unwanted.algorithm, unwanted.config, unwanted.why}) {
      tutti_string_free(text);
    }
    return tuned;
  });
}
tutti_status_t tutti_matmul_explain(const tutti_matmul_t* call, char** text) {
  const char* const name = __func__;
  return run([&] {
    return with_call(name, call,
                     [&](const Matmul& made) { return give_text(name, explain(made), text); });
  });
}

tutti_status_t tutti_all_gather_matmul(tutti_communicator_t* communicator,
                                       const tutti_all_gather_matmul_t* call) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) {
    return with_call(name, call, [&](const AllGatherMatmul& made) {
      return all_gather_matmul(open.communicator, made);
    });
  });
}
tutti_status_t tutti_all_gather_matmul_workspace(tutti_communicator_t* communicator,
                                                 const tutti_all_gather_matmul_t* call,
                                                 size_t* bytes) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) {
    if (bytes == nullptr) return invalid(name, "`bytes` is null");
    return with_call(name, call, [&](const AllGatherMatmul& made) {
      const auto needed = all_gather_matmul_workspace(open.communicator, made);
      if (needed.is_ok()) *bytes = *needed;
      return needed.status();
    });
  });
}
tutti_status_t tutti_all_gather_matmul_plan(tutti_communicator_t* communicator,
                                            const tutti_all_gather_matmul_t* call,
                                            tutti_matmul_plan_t* plan) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) -> Status {
    if (Status checked = check_plan(name, plan); !checked.is_ok()) return checked;
    return with_call(name, call, [&](const AllGatherMatmul& made) {
      return give_matmul_plan(tutti::plan(open.communicator, made), plan);
    });
  });
}
tutti_status_t tutti_all_gather_matmul_explain(tutti_communicator_t* communicator,
                                               const tutti_all_gather_matmul_t* call, char** text) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) {
    return with_call(name, call, [&](const AllGatherMatmul& made) {
      return give_text(name, explain(open.communicator, made), text);
    });
  });
}
}
