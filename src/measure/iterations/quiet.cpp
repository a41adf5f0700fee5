#include "measure/iterations/quiet.h"

#include <chrono>
#include <thread>

#include "base/clock.h"

namespace ridgeline {

bool wait_until_quiet(const QuietClocks& clocks) {
  const double begin = clocks.now();
  double at = begin, used = clocks.used();
  do {
    clocks.sleep(kQuietWindow);
    const double now = clocks.now(), more = clocks.used();
    if (more - used < kQuietShare * (now - at)) return true;
    at = now;
    used = more;
  } while (at - begin < kLongestWait);
  return false;
}

bool wait_until_quiet(const std::function<double()>& used) {
  const auto start = Clock::now();
  return wait_until_quiet({.now = [&] { return seconds_since(start); },
                           .sleep =
                               [](double seconds) {
                                 std::this_thread::sleep_for(
                                     std::chrono::duration<double>(seconds));
                               },
                           .used = used});
}

}  // namespace ridgeline
