#include "base/shared_library.h"

#include <dlfcn.h>

namespace ridgeline {

SharedLibrary::SharedLibrary(std::initializer_list<std::string> names) {
  for (const std::string& name : names) {
    library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) return;
    // The first name is the one that is wanted: its absence is what the user can act on.
    if (problem_.empty()) problem_ = dlerror();
  }
}

void* SharedLibrary::address_of(const char* name) {
  if (library_ == nullptr) return nullptr;
  void* const found = dlsym(library_, name);
  if (found == nullptr && missing_.empty()) missing_ = name;
  return found;
}

std::string SharedLibrary::problem() const {
  if (library_ == nullptr) return problem_;
  return missing_.empty() ? std::string() : "it has no function " + missing_;
}

}  // namespace ridgeline
