// Three products of one A, as a layer's query, key and value are, on the host. With pointers to GPU
// memory and a stream, the same call runs on the GPU.
#include <tutti/tutti.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

void check(const tutti::Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  std::exit(1);
}

int main() {
  constexpr std::size_t kTokens = 100, kWidth = 256, kKeys = 64;
  const std::vector<float> input(kTokens * kWidth, 0.5F);
  const std::vector<float> query_weights(kWidth * kWidth, 0.25F);
  const std::vector<float> key_weights(kWidth * kKeys, -1), value_weights(kWidth * kKeys, 2);
  const std::vector<float> bias(kWidth, 10);
  std::vector<float> query(kTokens * kWidth);
  std::vector<float> keys_values(kTokens * 2 * kKeys);  // rows of 64 keys and 64 values

  const tutti::MatmulProduct more[] = {
      {.b = key_weights.data(), .c = keys_values.data(), .n = kKeys, .ldc = 2 * kKeys},
      {.b = value_weights.data(), .c = keys_values.data() + kKeys, .n = kKeys, .ldc = 2 * kKeys}};
  const tutti::Matmul call = {.a = input.data(),
                              .b = query_weights.data(),
                              .c = query.data(),
                              .bias = bias.data(),
                              .m = kTokens,
                              .n = kWidth,
                              .k = kWidth,
                              .dtype = tutti::DataType::kFloat32,
                              .more = more};
  check(tutti::matmul(nullptr, call));
  std::printf("query %g, key %g, value %g\n", query.back(), keys_values.front(),
              keys_values.back());

  const auto explanation = tutti::explain(call);
  check(explanation.status());
  std::printf("%s", explanation->c_str());
}
