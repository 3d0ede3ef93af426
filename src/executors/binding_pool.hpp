// What operations are bound to, kept and used again, so that a call allocates nothing. Not
// thread-safe: an executor uses it under its group's lock.
#pragma once

#include <memory>
#include <vector>

namespace tutti {

template <class T>
class BindingPool {
 public:
  // As its last user left it.
  T& take() {
    if (idle_.empty()) return *all_.emplace_back(std::make_unique<T>());
    T* const binding = idle_.back();
    idle_.pop_back();
    return *binding;
  }
  // Once for each take().
  void give_back(T& binding) { idle_.push_back(&binding); }

 private:
  std::vector<std::unique_ptr<T>> all_;
  std::vector<T*> idle_;
};

}  // namespace tutti
