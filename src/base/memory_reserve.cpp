#include "base/memory_reserve.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace ridgeline {
namespace {

constexpr std::size_t kReserve = std::size_t{4} << 20;

constinit std::atomic<void*> reserve = nullptr;
constinit std::atomic<bool> needed = false;

// Called by operator new, which tries again when it returns.
void give_back() {
  needed = true;
  void* const memory = reserve.exchange(nullptr);
  if (memory == nullptr) throw std::bad_alloc();
  std::free(memory);
}

}  // namespace

void keep_memory_reserve() {
  reserve = std::malloc(kReserve);
  std::set_new_handler(&give_back);
}

bool memory_ran_out() noexcept { return needed; }

}  // namespace ridgeline
