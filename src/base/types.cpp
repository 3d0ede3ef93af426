#include "tutti/types.hpp"

#include "base/guard.hpp"
#include "base/names.hpp"
#include "tutti/device/scalar.hpp"

namespace tutti {
namespace {

constexpr Name<DataType> kDataTypes[] = {
    {DataType::kFloat64, "fp64"},        {DataType::kFloat32, "fp32"},
    {DataType::kFloat16, "fp16"},        {DataType::kBfloat16, "bf16"},
    {DataType::kFloat8E4M3, "fp8_e4m3"}, {DataType::kFloat8E5M2, "fp8_e5m2"},
    {DataType::kInt8, "int8"},           {DataType::kUint8, "uint8"},
    {DataType::kInt32, "int32"},         {DataType::kUint32, "uint32"},
    {DataType::kInt64, "int64"},         {DataType::kUint64, "uint64"},
};
// The words of C, of nccl-tests and of Python's frameworks.
constexpr Name<DataType> kDataTypeAliases[] = {
    {DataType::kFloat64, "double"},         {DataType::kFloat64, "float64"},
    {DataType::kFloat32, "float"},          {DataType::kFloat32, "float32"},
    {DataType::kFloat16, "half"},           {DataType::kFloat16, "float16"},
    {DataType::kBfloat16, "bfloat16"},      {DataType::kFloat8E4M3, "f8e4m3"},
    {DataType::kFloat8E4M3, "float8_e4m3"}, {DataType::kFloat8E4M3, "float8_e4m3fn"},
    {DataType::kFloat8E5M2, "f8e5m2"},      {DataType::kFloat8E5M2, "float8_e5m2"},
};
static_assert(std::size(kDataTypes) == kAllDataTypes.size());

constexpr Name<OpKind> kOps[] = {
    {OpKind::kSum, "sum"}, {OpKind::kProd, "prod"}, {OpKind::kMin, "min"},
    {OpKind::kMax, "max"}, {OpKind::kAvg, "avg"},   {OpKind::kPreMulSum, "premulsum"},
};
static_assert(std::size(kOps) == kAllOps.size());

constexpr Name<Backend> kBackends[] = {
    {Backend::kAuto, "auto"}, {Backend::kHost, "host"}, {Backend::kCuda, "cuda"}};

}  // namespace

std::size_t size_of(DataType dtype) {
  return visit_data_type(dtype, []<class T>() { return sizeof(T); });
}

bool is_floating(DataType dtype) { return dtype <= DataType::kFloat8E5M2; }

std::string_view to_string(DataType dtype) { return name_of<DataType>(kDataTypes, dtype); }
Result<DataType> parse_data_type(std::string_view text) {
  return guarded(
      [&] { return parse_name<DataType>(kDataTypes, kDataTypeAliases, "data type", text); });
}

std::string_view to_string(OpKind op) { return name_of<OpKind>(kOps, op); }
Result<OpKind> parse_op(std::string_view text) {
  return guarded([&] { return parse_name<OpKind>(kOps, {}, "reduction", text); });
}

std::string_view to_string(Backend backend) { return name_of<Backend>(kBackends, backend); }
Result<Backend> parse_backend(std::string_view text) {
  return guarded([&] { return parse_name<Backend>(kBackends, {}, "backend", text); });
}

}  // namespace tutti
