// A shared library that may not be there: opened at run time and never closed, since drivers start
// threads and register exit handlers of their own.
#pragma once

#include <string>

#include "tutti/status.hpp"

namespace tutti {

class DynamicLibrary {
 public:
  // `name` is a file, or a soname that the loader's own search finds. kUnavailable holds the
  // loader's words, or says that it is a folder, a FIFO or the like.
  static Result<DynamicLibrary> open(const std::string& name);
  // Only where something in this process has loaded `soname` already.
  static Result<DynamicLibrary> open_loaded(const std::string& soname);

  // Sets `function` to `symbol`, or to null where the library has none by that name.
  template <class Function>
  bool find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(address_of(symbol));
    return function != nullptr;
  }

  // The same for what cannot be done without: adds the names that are missing to `missing`.
  template <class Function>
  void require(const char* symbol, Function*& function, std::string& missing) const {
    if (find(symbol, function)) return;
    missing += missing.empty() ? "" : ", ";
    missing += symbol;
  }

  std::string path() const;  // the file it came from; empty if the loader does not tell

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  static Result<DynamicLibrary> open_with(const std::string& name, int flags);
  void* address_of(const char* symbol) const;

  void* handle_ = nullptr;
};

}  // namespace tutti
