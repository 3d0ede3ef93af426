#include "simulator/fiber.hpp"

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
  begun_ = finished_ = false;
  getcontext(&beginning_);
  beginning_.uc_stack.ss_sp = stack_;
  beginning_.uc_stack.ss_size = kStackBytes;
  beginning_.uc_link = nullptr;
  // makecontext passes ints: the pointer travels in two halves.
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&beginning_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(std::uint64_t{self} >> 32), static_cast<unsigned>(self));
}

void Fiber::enter(unsigned high, unsigned low) {
  const auto self = static_cast<std::uintptr_t>(std::uint64_t{high} << 32 | low);
  auto& fiber = *reinterpret_cast<Fiber*>(self);
  fiber.body_();
  fiber.finished_ = true;
  fiber.pause();
}

// A context is entered once; from then on jumps do, which, other than swapcontext, save no signal
// mask and so make no system call.
void Fiber::resume() {
  if (_setjmp(there_) != 0) return;
  if (begun_) _longjmp(here_, 1);
  begun_ = true;
  setcontext(&beginning_);
}

void Fiber::pause() {
  if (_setjmp(here_) == 0) _longjmp(there_, 1);
}

}  // namespace tutti::simulated
