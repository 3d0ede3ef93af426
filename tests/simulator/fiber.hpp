// A function with a stack of its own, which runs until it pauses and goes on where it was.
#pragma once

#include <cstddef>
#include <functional>
#include <setjmp.h>
#include <ucontext.h>

namespace tutti::simulated {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From now on resume() runs `body`. Whatever ran before is forgotten, without unwinding.
  void start(std::function<void()> body);
  // Until the body pauses or returns.
  void resume();
  // By the body alone: back to who resumed it.
  void pause();
  bool finished() const { return finished_; }

 private:
  static void enter(unsigned high, unsigned low);

  std::byte* stack_ = nullptr;
  std::function<void()> body_;
  ucontext_t beginning_{};
  jmp_buf here_{}, there_{};  // the fiber's place, and that of who resumed it
  bool begun_ = false, finished_ = true;
};

}  // namespace tutti::simulated
