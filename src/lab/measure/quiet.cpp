#include "lab/measure/quiet.h"

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

}  // namespace ridgeline
