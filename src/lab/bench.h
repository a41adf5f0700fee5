#pragma once

// Measures training steps and inferences over models, backends, batches and so on: what
// `ridgeline bench` does.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/bench_matrix.h"
#include "lab/listener.h"
#include "lab/store_options.h"
#include "measure/iterations/result.h"
#include "measure/telemetry/telemetry.h"

namespace ridgeline {

struct BenchRequest {
  BenchAxes axes;
  BenchWork work;
  StoreOptions store;
  std::optional<std::int64_t> warmup, iterations;
  double precision_percent = 1.0, max_seconds = 20.0;
  std::int64_t processes = 1;
  double telemetry_hz = kTelemetryHz;
  std::string tensorboard;  // folder of event files; empty: none
  bool split = true;        // a few iterations with forward, backward and optimizer apart
};

// Starts this call again as one of several processes, whose standard output are the events of
// `bench_as_process`.
using ProcessCommand =
    std::function<std::vector<std::string>(std::int64_t number, std::size_t candidates)>;

struct BenchReport {
  std::vector<Measured> results;  // one for each candidate
  std::vector<LeftOut> left_out;
  std::string grouping;                   // why not all were side by side; empty: they were
  std::string order;                      // how turns were taken, in words
  std::vector<std::string> runs;          // uuid of each in the store; empty: not stored
  std::string store;                      // the file; empty: none
  std::optional<double> telemetry_share;  // of one core; nothing: no telemetry
  std::optional<double> recording_share;  // of the time of the whole measuring; nothing: no store
  std::int64_t processes = 1;
  std::string store_trouble, board_trouble;  // why not all was written; empty: it was

  [[nodiscard]] bool failed() const;  // a candidate, or the store
};

// Throws bad_input for what cannot be measured. A candidate that fails does not end the others.
[[nodiscard]] BenchReport run_bench(BenchRequest request, CallListener& listener,
                                    const ProcessCommand& process_command = {});

// One of several processes: measures and hands every event on as a line. `candidates`: how many the
// process that started it found; others are a failure.
void bench_as_process(BenchRequest request, std::int64_t number, std::size_t candidates,
                      CallListener& listener, const std::function<void(const std::string&)>& write);

// One of several ranks that share the steps of a configuration: the one with that number. Rank 0
// reads what to do and writes what was measured.
void bench_as_rank(BenchRequest request, std::size_t number, CallListener& listener,
                   const std::function<std::optional<std::string>()>& read,
                   const std::function<void(const std::string&)>& write);

}  // namespace ridgeline
