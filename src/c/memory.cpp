#include "c/arguments.hpp"
#include "c/failure.hpp"
#include "tutti/local_memory.hpp"
#include "tutti/symmetric_memory.hpp"
#include "tutti/symmetric_pool.hpp"

namespace tutti::c {
namespace {

Status give_memory(Result<SymmetricMemory> made, tutti_memory_t** out) {
  if (!made.is_ok()) return made.status();
  return give(std::make_unique<SymmetricMemory>(std::move(*made)), out);
}

}  // namespace
}  // namespace tutti::c

using namespace tutti::c;  // NOLINT(google-build-using-namespace)
using tutti::LocalMemory;
using tutti::Status;
using tutti::SymmetricBlock;
using tutti::SymmetricMemory;

extern "C" {

tutti_status_t tutti_memory_allocate(tutti_communicator_t* communicator, size_t bytes,
                                     tutti_memory_t** memory) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) {
    if (memory == nullptr) return invalid(name, "`memory` is null");
    return give_memory(open.communicator.allocate(bytes), memory);
  });
}
tutti_status_t tutti_memory_register(tutti_communicator_t* communicator, void* address,
                                     size_t bytes, tutti_memory_t** memory) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) {
    if (memory == nullptr) return invalid(name, "`memory` is null");
    return give_memory(open.communicator.register_memory(address, bytes), memory);
  });
}
tutti_status_t tutti_memory_free(tutti_memory_t* memory) { return end(__func__, memory); }

tutti_status_t tutti_memory_info(tutti_memory_t* memory, tutti_memory_info_t* info) {
  const char* const name = __func__;
  return run_on(name, memory, [&](SymmetricMemory& of) {
    return give_struct(name, "info", info, [&](tutti_memory_info_t& made) {
      made.data = of.data();
      made.bytes = of.size();
      made.zero_copy = of.zero_copy() ? 1 : 0;
    });
  });
}

tutti_status_t tutti_memory_peer(tutti_memory_t* memory, int rank, void** address) {
  const char* const name = __func__;
  return run_on(name, memory, [&](SymmetricMemory& of) -> Status {
    if (address == nullptr) return invalid(name, "`address` is null");
    if (!of.zero_copy()) {
      return {tutti::StatusCode::kUnsupported,
              "tutti_memory_peer: peers cannot address this memory, so it is staged"};
    }
    void* const found = of.peer(rank);
    if (found == nullptr) return invalid(name, "the group has no such rank");
    *address = found;
    return Status::ok();
  });
}

tutti_status_t tutti_local_memory_allocate(tutti_communicator_t* communicator, size_t bytes,
                                           tutti_local_memory_t** memory) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) -> Status {
    if (memory == nullptr) return invalid(name, "`memory` is null");
    auto made = open.communicator.allocate_local(bytes);
    if (!made.is_ok()) return made.status();
    return give(std::make_unique<LocalMemory>(std::move(*made)), memory);
  });
}
tutti_status_t tutti_local_memory_free(tutti_local_memory_t* memory) {
  return end(__func__, memory);
}
tutti_status_t tutti_local_memory_info(tutti_local_memory_t* memory,
                                       tutti_local_memory_info_t* info) {
  const char* const name = __func__;
  return run_on(name, memory, [&](LocalMemory& of) {
    return give_struct(name, "info", info, [&](tutti_local_memory_info_t& made) {
      made.data = of.data();
      made.bytes = of.size();
    });
  });
}

tutti_status_t tutti_pool_create(tutti_communicator_t* communicator, tutti_pool_t** pool) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) {
    if (pool == nullptr) return invalid(name, "`pool` is null");
    return give(
        std::make_unique<OpenPool>(OpenPool{communicator, tutti::SymmetricPool(open.communicator)}),
        pool);
  });
}

tutti_status_t tutti_pool_take(tutti_pool_t* pool, size_t bytes, tutti_stream_t stream,
                               tutti_block_t** block) {
  const char* const name = __func__;
  return run_on(name, pool, [&](OpenPool& open) -> Status {
    if (block == nullptr) return invalid(name, "`block` is null");
    if (find(open.communicator) == nullptr) {
      return invalid(name, "the communicator of this pool is closed");
    }
    auto taken = open.pool.take(bytes, stream);
    if (!taken.is_ok()) return taken.status();
    return give(std::make_unique<SymmetricBlock>(std::move(*taken)), block);
  });
}
tutti_status_t tutti_pool_trim(tutti_pool_t* pool) {
  return run_on(__func__, pool, [](OpenPool& open) {
    open.pool.trim();
    return Status::ok();
  });
}
tutti_status_t tutti_pool_destroy(tutti_pool_t* pool) { return end(__func__, pool); }

tutti_status_t tutti_pool_use(tutti_pool_t* pool, tutti_pool_use_t* use) {
  const char* const name = __func__;
  return run_on(name, pool, [&](OpenPool& open) {
    return give_struct(name, "use", use, [&](tutti_pool_use_t& made) {
      const tutti::SymmetricPool::Use held = open.pool.use();
      made.blocks = held.blocks;
      made.taken_bytes = held.taken_bytes;
      made.free_bytes = held.free_bytes;
    });
  });
}

tutti_status_t tutti_block_info(tutti_block_t* block, tutti_block_info_t* info) {
  const char* const name = __func__;
  return run_on(name, block, [&](SymmetricBlock& of) {
    return give_struct(name, "info", info, [&](tutti_block_info_t& made) {
      made.data = of.data();
      made.bytes = of.bytes();
    });
  });
}
tutti_status_t tutti_block_give_back(tutti_block_t* block, tutti_stream_t stream) {
  return run_on(__func__, block, [&](SymmetricBlock& of) {
    Status given = of.give_back(stream);
    if (given.is_ok()) (void)close(block);
    return given;
  });
}
tutti_status_t tutti_block_free(tutti_block_t* block) { return end(__func__, block); }
}
