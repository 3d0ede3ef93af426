#include <cstddef>
#include <string_view>

#include "c/arguments.hpp"
#include "c/failure.hpp"
#include "tutti/matmul.hpp"
#include "tutti/tuning.hpp"
#include "tutti/types.hpp"
#include "tutti/version.hpp"

namespace tutti::c {
namespace {

constexpr std::size_t kStatusCodes = static_cast<std::size_t>(StatusCode::kInternal) + 1;
constexpr std::size_t kPlanSources = static_cast<std::size_t>(PlanSource::kModel) + 1;

// The names are literals, so they end with a zero.
template <class E>
const char* name_of(int number, std::size_t count) {
  const bool is_known = number >= 0 && static_cast<std::size_t>(number) < count;
  return is_known ? to_string(static_cast<E>(number)).data() : "?";
}

// `parse` is the inverse of to_string().
template <class E>
tutti_status_t parsed(const char* function, const char* name, int* out,
                      Result<E> (*parse)(std::string_view)) {
  return run([&]() -> Status {
    if (name == nullptr || out == nullptr) return invalid(function, "an argument is null");
    const Result<E> found = parse(name);
    if (found.is_ok()) *out = static_cast<int>(*found);
    return found.status();
  });
}

bool is_data_type(int number) {
  return number >= 0 && static_cast<std::size_t>(number) < kAllDataTypes.size();
}

}  // namespace
}  // namespace tutti::c

using namespace tutti::c;  // NOLINT(google-build-using-namespace)

extern "C" {

const char* tutti_version(void) { return tutti::version(); }
void tutti_string_free(char* string) { delete[] string; }

const char* tutti_status_name(tutti_status_t status) {
  return name_of<tutti::StatusCode>(status, kStatusCodes);
}

size_t tutti_data_type_size(tutti_data_type_t dtype) {
  return is_data_type(dtype) ? size_of(static_cast<tutti::DataType>(dtype)) : 0;
}
int tutti_data_type_is_floating(tutti_data_type_t dtype) {
  return is_data_type(dtype) && is_floating(static_cast<tutti::DataType>(dtype)) ? 1 : 0;
}
const char* tutti_data_type_name(tutti_data_type_t dtype) {
  return name_of<tutti::DataType>(dtype, tutti::kAllDataTypes.size());
}
tutti_status_t tutti_parse_data_type(const char* name, tutti_data_type_t* dtype) {
  return parsed(__func__, name, dtype, tutti::parse_data_type);
}

const char* tutti_op_name(tutti_op_kind_t kind) {
  return name_of<tutti::OpKind>(kind, tutti::kAllOps.size());
}
tutti_status_t tutti_parse_op(const char* name, tutti_op_kind_t* kind) {
  return parsed(__func__, name, kind, tutti::parse_op);
}

const char* tutti_backend_name(tutti_backend_t backend) {
  return name_of<tutti::Backend>(backend, 3);
}
tutti_status_t tutti_parse_backend(const char* name, tutti_backend_t* backend) {
  return parsed(__func__, name, backend, tutti::parse_backend);
}

const char* tutti_plan_source_name(int source) {
  return name_of<tutti::PlanSource>(source, kPlanSources);
}

const char* tutti_matrix_layout_name(tutti_matrix_layout_t layout) {
  return name_of<tutti::MatrixLayout>(layout, 2);
}
tutti_status_t tutti_parse_matrix_layout(const char* name, tutti_matrix_layout_t* layout) {
  return parsed(__func__, name, layout, tutti::parse_matrix_layout);
}
}
