#pragma once

// Something whose iterations can be measured: a training step or an inference of the engine, or the
// same by a peer in another process.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/session.h"
#include "store/records.h"

namespace ridgeline {

// What is known before anything is allocated.
struct Subject {
  Work work;
  Executor executor;
  // Of the device's memory, while it is prepared; nothing: it cannot be told beforehand.
  std::optional<std::int64_t> needed_bytes;
};

// What came before the first iteration.
struct Preparation {
  double setup_seconds = 0.0;              // planning, allocating, initial weights, first batch
  std::optional<double> autotune_seconds;  // of that, looking for the fastest kernels
};

// One iteration, waited for.
struct Iteration {
  double ended_ago_seconds = 0.0;  // where several are reported at once
  double wall_seconds = 0.0;
  std::optional<double> device_seconds;  // by the device's own clock
  std::optional<double> data_wait_seconds, upload_seconds;
  std::optional<double> exchange_seconds, exposed_seconds;  // of several ranks
  // By this process's clock; nothing of an iteration in another process.
  std::optional<std::chrono::steady_clock::time_point> began;
  // When it asked for its batch: the wait and then the upload follow.
  std::optional<std::chrono::steady_clock::time_point> asked_for_data;
};

// What an iteration of the engine runs.
struct EnginePlan {
  Session* session = nullptr;
  Session::PlanId plan = 0;
};

// The same iteration with the phases waited for one after another.
struct SplitIteration {
  double wall_seconds = 0.0;
  double forward_seconds = 0.0, backward_seconds = 0.0, optimizer_seconds = 0.0;
};

// What there is to tell when all iterations are done.
struct StepDetails {
  std::vector<StepTime> steps;
  std::vector<MemoryEntry> memory;
  std::vector<Finding> findings;
  std::vector<std::string> kernels;  // of the plan, in order
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> notes;
};

// Calls come from one thread, in this order: prepare, run and the like as often as wanted, details,
// close. Whatever fails throws an Error; the step is then only closed.
class MeasuredStep {
 public:
  virtual ~MeasuredStep() = default;
  [[nodiscard]] virtual const Subject& subject() const = 0;
  virtual Preparation prepare() = 0;
  // Runs `count` iterations and shows each; fewer when `see` says false.
  virtual void run(std::int64_t count, const std::function<bool(const Iteration&)>& see) = 0;
  // One of `count` iterations that are queued without waiting in between; nothing where nothing can
  // be queued.
  [[nodiscard]] virtual std::optional<Iteration> run_queued(std::int64_t count) {
    (void)count;
    return std::nullopt;
  }
  // Whether something works for it while others have their turns: a loader that fetches ahead.
  [[nodiscard]] virtual bool works_ahead() const { return false; }
  // Processor time that it has used so far in a process of its own; nothing: it has none.
  [[nodiscard]] virtual std::optional<double> processor_seconds() const { return std::nullopt; }
  // Nothing where the phases cannot be told apart.
  [[nodiscard]] virtual std::optional<SplitIteration> run_split() { return std::nullopt; }
  // With `timed`, the time of each step of the plan too, which takes some seconds.
  [[nodiscard]] virtual StepDetails details(bool timed) = 0;
  // Once prepared; nothing of a peer, which has no plan of ours.
  [[nodiscard]] virtual std::optional<EnginePlan> engine() { return std::nullopt; }
  virtual void close() = 0;  // gives memory, threads and processes back
};

}  // namespace ridgeline
