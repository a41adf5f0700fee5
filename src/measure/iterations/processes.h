#pragma once

// The same measuring in several processes, one after another: what differs from one start of a
// program to the next (addresses, pages, threads' places) then shows in the interval.

#include <string>
#include <vector>

#include "measure/iterations/measurement.h"

namespace ridgeline {

struct ProcessesConfig {
  std::int64_t processes = 1;
  // Program and arguments of process `number`. It writes events (events.h) to its standard output.
  std::function<std::vector<std::string>(std::int64_t number)> command;
  std::size_t candidates = 0;
};

// Runs them and hands their events on. A process that ends before all candidates have ended ends
// those with the reason. `control` is asked while waiting; when it says false, the process gets an
// interrupt, and no other is started. False when it was interrupted.
bool measure_in_processes(const ProcessesConfig& config, const MeasureControl& control,
                          MeasureSink& sink);

}  // namespace ridgeline
