#include "transport/host_simulated/fiber.hpp"

#include <cstdint>
#include <memory>

namespace tutti::simulated {
namespace {

constexpr std::size_t kStackBytes = 128 * 1024;

}  // namespace

Fiber::Fiber() : stack_(std::allocator<std::byte>().allocate(kStackBytes)) {}
Fiber::~Fiber() { std::allocator<std::byte>().deallocate(stack_, kStackBytes); }

void Fiber::start(std::function<void()> body) {
  body_ = std::move(body);
  finished_ = false;
  getcontext(&here_);
  here_.uc_stack.ss_sp = stack_;
  here_.uc_stack.ss_size = kStackBytes;
  here_.uc_link = nullptr;
  // makecontext passes ints: the pointer travels in two halves.
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&here_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(std::uint64_t{self} >> 32), static_cast<unsigned>(self));
}

void Fiber::enter(unsigned high, unsigned low) {
  const auto self = static_cast<std::uintptr_t>(std::uint64_t{high} << 32 | low);
  auto& fiber = *reinterpret_cast<Fiber*>(self);
  fiber.body_();
  fiber.finished_ = true;
  fiber.pause();
}

void Fiber::resume() { swapcontext(&there_, &here_); }
void Fiber::pause() { swapcontext(&here_, &there_); }

}  // namespace tutti::simulated
