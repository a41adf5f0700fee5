#include "base/processor_time.h"

#include <ctime>

namespace ridgeline {
namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return 0.0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double processor_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }
double thread_processor_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

double processor_seconds_of(int process) {
  clockid_t clock{};
  return clock_getcpuclockid(process, &clock) == 0 ? seconds_of(clock) : 0.0;
}

}  // namespace ridgeline
