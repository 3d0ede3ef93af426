#include "fused/all_gather_matmul.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"
#include "base/units.hpp"
#include "fused/overlap.hpp"
#include "matmul/problem.hpp"

namespace tutti {
namespace {

Status invalid_call(std::string_view text) {
  return {StatusCode::kInvalidArgument, fmt::format("{}: {}", kAllGatherMatmul, text)};
}

std::uintptr_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

// The product that follows the gather, of which only A is missing.
Matmul matmul_of(const AllGatherMatmul& call, Backend backend) {
  return {.b = call.b,
          .c = call.c,
          .bias = call.bias,
          .m = call.m,
          .n = call.n,
          .k = call.k,
          .ldb = call.ldb,
          .ldc = call.ldc,
          .dtype = call.dtype,
          .b_layout = call.b_layout,
          .more = call.more,
          .backend = backend};
}

// Types, and the size of A.
Status check_shape(const AllGatherMatmul& call, const AllGatherMatmulRank& place) {
  TUTTI_TRY(check_kinds(matmul_of(call, place.backend)).with_context(kAllGatherMatmul));
  if (call.lda != 0 && call.lda != call.k) {
    return invalid_call(
        fmt::format("lda is {} and k is {}: the rows of a shard follow each other without gaps",
                    call.lda, call.k));
  }
  if (call.m > kMostBytes / size_of(call.dtype) / std::max<std::size_t>(call.k, 1)) {
    return invalid_call("m x k overflows");
  }
  return Status::ok();
}

bool has_a(const AllGatherMatmul& call) { return call.m > 0 && call.k > 0; }

// Where A is gathered; null where it is not.
Result<void*> find_target(const AllGatherMatmul& call, const AllGatherMatmulRank& place) {
  if (!has_a(call)) return nullptr;
  if (call.gathered != nullptr) return call.gathered;
  TUTTI_ASSIGN(const std::size_t needed, workspace_bytes(call, place));
  if (needed == 0) return nullptr;
  const std::string matrix = fmt::format("A [{}, {}] needs {} bytes", call.m, call.k, needed);
  if (call.workspace == nullptr) {
    return invalid_call(fmt::format("neither workspace nor gathered: the gathered {}", matrix));
  }
  if (call.workspace_bytes < needed) {
    return invalid_call(
        fmt::format("workspace_bytes is {}: the gathered {}", call.workspace_bytes, matrix));
  }
  return call.workspace;
}

Status check_aligned(std::string_view name, const void* memory, DataType dtype) {
  if (address_of(memory) % size_of(dtype) == 0) return Status::ok();
  return invalid_call(
      fmt::format("{} is not aligned to its elements' {} bytes", name, size_of(dtype)));
}

// All matrices of a call that hold anything.
class Placement {
 public:
  explicit Placement(const CheckedMatmul& call)
      : problem_(call.problem), element_(size_of(call.problem.dtype)) {}

  void add(std::string name, const void* memory, std::size_t lines, std::size_t length,
           std::size_t distance = 0) {
    if (memory == nullptr || lines == 0 || length == 0) return;
    matrices_.push_back({.name = std::move(name),
                         .address = address_of(memory),
                         .lines = lines,
                         .length = length * element_,
                         .distance = std::max(distance, length) * element_});
  }
  void add_written(std::string name, const void* memory, std::size_t lines, std::size_t length,
                   std::size_t distance = 0) {
    const std::size_t before = matrices_.size();
    add(std::move(name), memory, lines, length, distance);
    if (matrices_.size() > before) matrices_.back().written = true;
  }
  void add_product(const std::string& path, const ProductShape& shape, const ProductPlaces& at) {
    const bool rows = problem_.b_layout == MatrixLayout::kRowMajor;
    add(path + "b", at.b, rows ? problem_.k : shape.n, rows ? shape.n : problem_.k, shape.ldb);
    add(path + "bias", at.bias, 1, shape.n);
    add_written(path + "c", at.c, problem_.m, shape.n, shape.ldc);
  }
  Status check() const { return check_apart(matrices_).with_context(kAllGatherMatmul); }

 private:
  const MatmulProblem& problem_;
  const std::size_t element_;
  std::vector<PlacedMatrix> matrices_;
};

// A shard at its place in the target is the target's own.
bool is_in_place(const AllGatherMatmulProblem& problem) {
  const std::size_t first = problem.rows(problem.place.rank).begin * problem.matmul.k;
  return problem.target != nullptr &&
         address_of(problem.shard) ==
             address_of(problem.target) + first * size_of(problem.matmul.dtype);
}

// The products that hold anything have been given numbers; those without columns have none.
Status check_places(const AllGatherMatmulProblem& problem, const CheckedMatmul& checked) {
  const Matmul& matmul = problem.matmul;
  Placement placement(checked);
  if (!is_in_place(problem)) {
    placement.add("a", problem.shard, problem.rows(problem.place.rank).count(), matmul.k);
  }
  int at = 0;
  const auto add = [&](const std::string& path, std::size_t n) {
    if (n == 0 || matmul.m == 0) return;
    const auto which = static_cast<std::size_t>(at++);
    placement.add_product(path, checked.problem.product[which], checked.product[which]);
  };
  add("", matmul.n);
  for (std::size_t i = 0; i < matmul.more.size(); ++i) {
    add(fmt::format("more[{}].", i), matmul.more[i].n);
  }
  placement.add_written("the gathered A", problem.target, matmul.m, matmul.k);
  return placement.check();
}

// "; measured: 708 us", of a table's entry for the call; empty where that has none.
std::string time_text(const AllGatherMatmulEntry* entry, AllGatherMatmulAlgorithm algorithm) {
  if (entry == nullptr) return {};
  double time_us = 0;
  if (algorithm == AllGatherMatmulAlgorithm::kUnfused) time_us = entry->unfused_us;
  if (algorithm == entry->runner_up && time_us == 0) time_us = entry->runner_up_us;
  if (algorithm == entry->way.algorithm) time_us = entry->time_us;
  return time_us > 0 ? fmt::format("; measured: {:.4g} us", time_us) : "";
}

}  // namespace

Result<std::size_t> workspace_bytes(const AllGatherMatmul& call, const AllGatherMatmulRank& place) {
  TUTTI_TRY(check_shape(call, place));
  if (call.gathered != nullptr || place.ranks == 1) return std::size_t{0};
  return call.m * call.k * size_of(call.dtype);
}

Result<AllGatherMatmulProblem> check(const AllGatherMatmul& call,
                                     const AllGatherMatmulRank& place) {
  TUTTI_TRY(check_shape(call, place));
  AllGatherMatmulProblem problem{.place = place,
                                 .even = call.m % static_cast<std::size_t>(place.ranks) == 0,
                                 .matmul = matmul_of(call, place.backend)};
  TUTTI_ASSIGN(problem.target, find_target(call, place));
  problem.gathers = problem.target != nullptr;
  if (problem.shard_elements(place.rank) > 0) {
    problem.shard = call.a;
    if (call.a == nullptr) return invalid_call("null a");
    TUTTI_TRY(check_aligned("a", call.a, call.dtype));
  }
  TUTTI_TRY(check_aligned(call.gathered != nullptr ? "gathered" : "workspace", problem.target,
                          call.dtype));
  problem.matmul.a = place.ranks == 1 ? problem.shard : problem.target;
  const auto checked = check(problem.matmul);
  TUTTI_TRY(checked.status().with_context(kAllGatherMatmul));
  TUTTI_TRY(check_places(problem, *checked));
  return problem;
}

std::string describe(const AllGatherMatmulProblem& problem) {
  const Matmul& matmul = problem.matmul;
  std::string columns = fmt::format("{}", matmul.n);
  for (const MatmulProduct& product : matmul.more) columns += fmt::format(" + {}", product.n);
  const std::size_t products = 1 + matmul.more.size();
  return fmt::format("{} (m {}, n {}, k {}, {}, {} B{})", kAllGatherMatmul, matmul.m, columns,
                     matmul.k, to_string(matmul.b_layout), products, products == 1 ? "" : "s");
}

AllGatherMatmulSize sizes_of(const AllGatherMatmulProblem& problem) {
  AllGatherMatmulSize size{problem.matmul.m, problem.matmul.n, problem.matmul.k};
  for (const MatmulProduct& product : problem.matmul.more) size.n += product.n;
  return size;
}

Result<MatmulProblem> shared_product(const AllGatherMatmulProblem& problem) {
  alignas(256) static std::byte anywhere[256];  // never read or written
  Matmul product = problem.matmul;
  product.a = product.b = product.c = anywhere;
  product.bias = nullptr;
  product.lda = product.ldb = product.ldc = 0;
  std::vector<MatmulProduct> more(product.more.begin(), product.more.end());
  for (MatmulProduct& each : more) each = {.b = anywhere, .c = anywhere, .n = each.n};
  product.more = more;
  TUTTI_ASSIGN(const CheckedMatmul checked, check(product));
  return checked.problem;
}

bool overlaps(const AllGatherMatmulProblem& problem) {
  const auto has_columns = [](const MatmulProduct& product) { return product.n > 0; };
  const Matmul& matmul = problem.matmul;
  return problem.gathers && problem.place.ranks > 1 &&
         (matmul.n > 0 || std::any_of(matmul.more.begin(), matmul.more.end(), has_columns));
}

std::string explain(const AllGatherMatmulProblem& problem, const SelectedAllGatherMatmul& selected,
                    const WhyNotOverlapped& why_not) {
  const Matmul& matmul = problem.matmul;
  std::string text =
      fmt::format("{}, {}, {} ranks with {} rows{}\n", describe(problem), to_string(matmul.dtype),
                  problem.place.ranks, problem.rows(0).count(),
                  problem.even ? "" : ", the last ones with fewer");
  const std::string always;  // nothing prevents it
  for (const AllGatherMatmulAlgorithm algorithm : kAllGatherMatmulAlgorithms) {
    const bool taken = algorithm == selected.algorithm();
    const std::string& why = algorithm == AllGatherMatmulAlgorithm::kUnfused ? always
                             : is_pipelined(algorithm)                       ? why_not.pipelined
                                                                             : why_not.fused;
    text += fmt::format("  {} {:<15}  {}{}{}{}\n", taken ? '*' : ' ', to_string(algorithm),
                        why.empty() ? "can run it" : why, time_text(selected.entry, algorithm),
                        taken ? "; " : "", taken ? selected.why : "");
  }
  return text;
}

}  // namespace tutti
