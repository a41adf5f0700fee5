#pragma once

// A library that is opened when it is first needed, and stays open to the end of the process.

#include <initializer_list>
#include <string>

namespace ridgeline {

// With the first thing that went wrong.
class SharedLibrary {
 public:
  // The first of the names that can be opened.
  explicit SharedLibrary(std::initializer_list<std::string> names);

  // Stays null where the library lacks it, and is then its problem.
  template <typename Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(address_of(name));
  }

  // Why it cannot be used; empty when it can.
  [[nodiscard]] std::string problem() const;

 private:
  [[nodiscard]] void* address_of(const char* name);

  void* library_ = nullptr;
  std::string problem_, missing_;
};

}  // namespace ridgeline
