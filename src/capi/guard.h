#pragma once

// What every function of the C interface does around its work: errors become a code and a text.

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/reason.h"
#include "capi/ridgeline.h"

namespace ridgeline::capi {

void set_last_error(const std::string& text) noexcept;

// A handle that is in use elsewhere, or a process in which the library cannot work.
class HandleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws HandleError in a process that was forked from one that had used the library: the threads
// that computed there do not exist here.
void check_process();

// Runs `body`; gives its rl_code.
template <typename Body>
int guarded(Body&& body) noexcept {
  try {
    check_process();
    body();
    return RL_OK;
  } catch (const HandleError& error) {
    set_last_error(error.what());
    return RL_BAD_HANDLE;
  } catch (const Error& error) {
    set_last_error(error.what());
    return error.kind() == ErrorKind::bad_input      ? RL_BAD_INPUT
           : error.kind() == ErrorKind::lacks_memory ? RL_LACKS_MEMORY
                                                     : RL_FAILURE;
  } catch (const std::exception& error) {
    set_last_error(reason_of(error));
    return RL_FAILURE;
  } catch (...) {
    set_last_error("unknown error");
    return RL_FAILURE;
  }
}

// Throws bad_input for a null pointer.
template <typename Pointer>
Pointer given(Pointer pointer, const char* what) {
  if (pointer == nullptr) bad_input("{} is null", what);
  return pointer;
}

// A text that the caller frees.
inline char* to_text(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

// Gives the text of `make` through `result`.
template <typename Make>
int giving_text(char** result, Make&& make) noexcept {
  return guarded([&] {
    *given(result, "result") = nullptr;
    *result = to_text(make());
  });
}

// While one lives, its handle is this thread's alone.
class InUse {
 public:
  InUse(std::atomic_flag& flag, const char* what) : flag_(flag) {
    if (flag.test_and_set(std::memory_order_acquire)) {
      throw HandleError(fmt::format("the {} is in use by another thread", what));
    }
  }
  ~InUse() { flag_.clear(std::memory_order_release); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  std::atomic_flag& flag_;
};

}  // namespace ridgeline::capi
