#pragma once

// A Session owns the memory of one training: a state arena (parameters, gradients, optimizer state,
// statistics, metrics, inputs, StepState), shared by name between its Plans, and one scratch arena
// as large as the largest of them needs. Everything is allocated in prepare(); running a Plan
// allocates nothing.

#include <array>
#include <exception>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "devices/device.h"
#include "plan/plan.h"

namespace ridgeline {

// Told of each step of a plan as the host launches it, and while launches are recorded. On a device
// without a queue a step has run when after() is called.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void before(std::size_t step) = 0;
  virtual void after(std::size_t step) = 0;
  // Whether steps may run beside others while it watches; otherwise all run one after another.
  [[nodiscard]] virtual bool watches_beside() const { return false; }
  // What runs in the place of a step's kernel beside others: one that is timed, where the kernel
  // alone would not tell. before() and after() enclose its launch.
  [[nodiscard]] virtual const Kernel& beside(std::size_t step, const Kernel& kernel) {
    (void)step;
    return kernel;
  }
  // Around each run of a plan, replays too.
  virtual void before_run(std::size_t plan) { (void)plan; }
  virtual void after_run() {}
};

// Thrown by a run that was asked to stop.
class Interrupted : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "interrupted"; }
};

class Session {
 public:
  using PlanId = std::size_t;

  // REQUIRES: the device outlives the session.
  explicit Session(Device& device) : device_(device) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  // REQUIRES: prepare() was not called yet.
  PlanId add(Plan plan);
  // What prepare() will allocate.
  [[nodiscard]] std::int64_t state_bytes() const { return state_size_; }
  [[nodiscard]] std::int64_t scratch_bytes() const { return scratch_size_; }
  // Allocates the arenas and fills the state with zeros.
  void prepare();

  [[nodiscard]] const Plan& plan(PlanId id) const { return plans_[id]->plan; }
  [[nodiscard]] Device& device() const { return device_; }

  // State by name, plain layout. Sizes must fit; an input may be shorter than its room.
  void write(const std::string& name, std::span<const std::byte> bytes);
  // The same for an input whose bytes stay as they are until the device has been waited for: on
  // their way they are copied once less.
  void lend(const std::string& name, std::span<const std::byte> bytes);
  void read(const std::string& name, std::span<std::byte> bytes) const;  // waits for the device
  void clear(const std::string& name);
  // Where state lies in the device's memory. Who writes there says so by weights_changed().
  [[nodiscard]] std::span<std::byte> place(const std::string& name) const;
  // What was made of the weights for a plan is made anew.
  void weights_changed() { set_up_ = kNoPlan; }
  [[nodiscard]] bool has(const std::string& name) const { return state_.contains(name); }

  // What the next run() will see: of this, what the host writes before each step.
  StepState& step_state() { return step_state_; }
  // Writes all of it, the loss scale and its history too, or reads it back from the device.
  void write_step_state();
  [[nodiscard]] StepState read_step_state() const;

  void run(PlanId id);
  // Whether its runs are replays of a recording, from the second one on.
  [[nodiscard]] bool is_recorded(PlanId id) const { return plans_[id]->recording != nullptr; }
  // Of all runs so far: seconds in which nothing was computed because a step that may run beside
  // others, an exchange with other processes, was not done.
  [[nodiscard]] double exposed_seconds() const { return exposed_seconds_; }
  // From now on runs ask `stop` before they begin, and where steps are not queued before each step
  // up to the first that updates parameters. At "yes" they throw Interrupted: running statistics
  // and metrics may have changed by then, parameters and optimizer state have not. Empty: never.
  void stop_when(std::function<bool()> stop) { stop_ = std::move(stop); }
  // Whether a run may be left in the middle.
  [[nodiscard]] bool stops_within_runs() const { return stop_ && device_.kind() == "cpu"; }
  // Tells `observer` of the steps of run() from now on; null: none, or the one that marks steps for
  // other tools where nvtx_wanted(). What was recorded is recorded anew, so that the observer hears
  // of it. REQUIRES: the device is idle.
  void observe(StepObserver* observer);
  // Starts the launches of a step alone; queued.
  void launch_step(PlanId id, std::size_t step);
  // Runs step by step, waiting for each, and calls `after` with the index of each step done.
  void run_stepwise(PlanId id, const std::function<void(std::size_t)>& after);
  // Runs one step alone, on whatever its buffers hold.
  void run_step(PlanId id, std::size_t step);

  // The elements of a form in logical order, whatever its layout. Meaningful only while the form is
  // alive: after the last step for outputs, after the producing step in a stepwise run.
  [[nodiscard]] std::vector<double> read_form(PlanId id, FormId form) const;
  [[nodiscard]] std::vector<double> read_value(PlanId id, ValueId value) const;
  // Puts elements in logical order, rounded to the form's type, in its place.
  void write_form(PlanId id, FormId form, std::span<const double> elements);

  // The arenas themselves, for those who look at what was touched.
  [[nodiscard]] std::span<const std::byte> state() const {
    return {state_memory_.data(), static_cast<std::size_t>(state_size_)};
  }
  [[nodiscard]] std::span<std::byte> scratch() const {
    return {scratch_.data(), static_cast<std::size_t>(scratch_size_)};
  }

 private:
  struct StateEntry {
    Role role{};
    std::int64_t bytes = 0, offset = 0;
  };
  struct BoundStep {
    std::vector<Tensor> inputs, outputs;
    KernelArgs args;
  };
  struct Bound {
    Plan plan;
    std::vector<BoundStep> steps, setup;
    // For each step, and for the end, how many of the steps that run beside others must be done.
    std::vector<std::size_t> beside_done;
    bool capturable = false;
    std::size_t first_update = 0;  // the first step that changes parameters or optimizer state
    std::int64_t runs = 0;
    bool tried_recording = false;
    std::unique_ptr<Recording> recording;  // where the device can replay a whole step
  };

  // Where state lies that so many bytes are written to.
  [[nodiscard]] std::byte* place_for(const std::string& name, std::size_t bytes);
  void place_state();
  void bind(Bound& bound) const;
  [[nodiscard]] std::vector<BoundStep> bound_steps(const Plan& plan,
                                                   std::span<const Step> steps) const;
  void set_up(PlanId id);
  [[nodiscard]] Tensor tensor(const Plan& plan, FormId id) const;
  [[nodiscard]] StepState* device_step_state() const;
  void upload_step_state(std::size_t bytes);
  void launch_all(const Bound& bound);
  void ask_before(const Bound& bound, std::size_t step) const;

  Device& device_;
  std::unique_ptr<StepObserver> marks_;  // where nvtx_wanted()
  StepObserver* observer_ = nullptr;
  std::function<bool()> stop_;
  std::vector<std::unique_ptr<Bound>> plans_;
  std::map<std::string, StateEntry> state_;
  std::vector<std::string> order_;  // of state, as the plans came
  std::int64_t state_size_ = 0, scratch_size_ = 0;
  DeviceMemory state_memory_, scratch_;
  bool prepared_ = false;
  double exposed_seconds_ = 0.0;
  // Whose setup lies in scratch with the weights as they are now; kNoPlan: none.
  static constexpr PlanId kNoPlan = ~PlanId{0};
  PlanId set_up_ = kNoPlan;

  StepState step_state_;
  // Copies under way to the device; one is used again only after the device has been waited for.
  std::array<StepState, 32> in_flight_{};
  std::size_t next_in_flight_ = 0;
};

}  // namespace ridgeline
