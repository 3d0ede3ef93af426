#include "fakes/fake_shared_memory.hpp"

#include <fmt/format.h>

namespace tutti {
namespace {

bool reaches_zero(int& countdown) { return countdown >= 0 && countdown-- == 0; }

Status exhausted(const char* what, std::size_t bytes) {
  return {StatusCode::kResourceExhausted,
          fmt::format("cannot {} {} bytes of shared memory: the test asks for it", what, bytes)};
}

}  // namespace

Result<Fd> FakeSharedMemory::create(std::size_t bytes) {
  if (reaches_zero(fail_create_at)) return exhausted("allocate", bytes);
  return inner_.create(bytes);
}

Result<std::byte*> FakeSharedMemory::map(int fd, std::size_t bytes) {
  if (reaches_zero(fail_map_at)) return exhausted("map", bytes);
  auto address = inner_.map(fd, bytes);
  if (address.is_ok()) ++mapped;
  return address;
}

void FakeSharedMemory::unmap(std::byte* address, std::size_t bytes) {
  inner_.unmap(address, bytes);
  if (address != nullptr) --mapped;
}

}  // namespace tutti
