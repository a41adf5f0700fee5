#include "plan/session.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/half.h"
#include "devices/nvtx.h"
#include "plan/memory.h"
#include "plan/nvtx_steps.h"

namespace ridgeline {
namespace {

const std::string kStepState = "step state";

double element(const std::byte* data, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::f64:
      return reinterpret_cast<const double*>(data)[index];
    case DType::f32:
      return reinterpret_cast<const float*>(data)[index];
    case DType::i32:
      return reinterpret_cast<const std::int32_t*>(data)[index];
    case DType::u8:
      return reinterpret_cast<const std::uint8_t*>(data)[index];
    case DType::bf16:
      return widened(reinterpret_cast<const BFloat16*>(data)[index]);
    case DType::f16:
      return widened(reinterpret_cast<const Float16*>(data)[index]);
  }
  fail("unknown element type");
}

void set_element(std::byte* data, DType dtype, std::int64_t index, double value) {
  switch (dtype) {
    case DType::f64:
      reinterpret_cast<double*>(data)[index] = value;
      return;
    case DType::f32:
      reinterpret_cast<float*>(data)[index] = static_cast<float>(value);
      return;
    case DType::i32:
      reinterpret_cast<std::int32_t*>(data)[index] = static_cast<std::int32_t>(value);
      return;
    case DType::u8:
      reinterpret_cast<std::uint8_t*>(data)[index] = static_cast<std::uint8_t>(value);
      return;
    case DType::bf16:
      reinterpret_cast<BFloat16*>(data)[index] = narrowed<BFloat16>(value);
      return;
    case DType::f16:
      reinterpret_cast<Float16*>(data)[index] = narrowed<Float16>(value);
      return;
  }
  fail("unknown element type");
}

// Calls take(number, offset) for each element in logical order; offsets count elements.
template <typename Take>
void for_each_element(const Tensor& tensor, Take&& take) {
  const Shape& shape = tensor.shape();
  const std::int64_t count = shape.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = 0, rest = i;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      offset += rest % shape[axis] * tensor.strides[static_cast<std::size_t>(axis)];
      rest /= shape[axis];
    }
    take(static_cast<std::size_t>(i), offset);
  }
}

// Room for what lies from the first element to the last; slices have gaps between.
std::vector<std::byte> bytes_of_extent(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.elements() == 0) return {};
  std::int64_t last = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    last += (shape[axis] - 1) * tensor.strides[static_cast<std::size_t>(axis)];
  }
  return std::vector<std::byte>(static_cast<std::size_t>(last + 1) * size_of(tensor.spec.dtype));
}

Tensor plain_tensor(const DeviceMemory& memory, const TensorSpec& spec) {
  return {memory.data(), spec, Layout::plain(), dense_strides(spec.shape, LayoutKind::plain)};
}

// Copies a value of a plan from one layout to another and waits.
void reorder(Device& device, const Plan& plan, const Tensor& from, const Tensor& to) {
  std::unique_ptr<Kernel> kernel;
  for (const Backend* backend : plan.providers) {
    if (kernel == nullptr) kernel = backend->make_reorder(from.spec, from.layout, to.layout);
  }
  ensure(kernel != nullptr, "no backend copies layout {} to {}", from.layout.text(),
         to.layout.text());
  const DeviceMemory workspace(device, std::max<std::size_t>(kernel->workspace_bytes, 64));
  device.launch(*kernel, {{&from, 1}, {&to, 1}, workspace.data(), nullptr, device.queue()});
  device.synchronize();
}

std::size_t first_update_of(const Plan& plan) {
  const auto updates = [&](const Step& step) {
    return std::any_of(step.outputs.begin(), step.outputs.end(), [&](FormId form) {
      if (form == kNoForm || !plan.in_state(plan.root(form).form)) return false;
      const Role role = plan.graph->value(plan.form(plan.root(form).form).value).role;
      return role == Role::parameter || role == Role::optimizer_state;
    });
  };
  return static_cast<std::size_t>(std::find_if(plan.steps.begin(), plan.steps.end(), updates) -
                                  plan.steps.begin());
}

}  // namespace

Session::~Session() {
  // Kernels that still run would use memory that goes away. What went wrong with one that ran
  // beside others, the run has thrown already.
  try {
    if (prepared_) device_.synchronize();
  } catch (const std::exception&) {
    return;
  }
}

Session::PlanId Session::add(Plan plan) {
  ensure(!prepared_, "a plan was added to a session that is already prepared");
  if (plans_.empty()) {
    state_[kStepState] = {Role::metric, static_cast<std::int64_t>(sizeof(StepState)), 0};
    order_.push_back(kStepState);
  }
  for (std::size_t id = 0; id < plan.forms.size(); ++id) {
    if (!plan.in_state(static_cast<FormId>(id))) continue;
    const Value& value = plan.graph->value(plan.forms[id].value);
    const auto [entry, is_new] = state_.try_emplace(value.name, StateEntry{value.role, 0, 0});
    if (is_new) order_.push_back(value.name);
    ensure(entry->second.role == value.role, "{} has two roles", value.name);
    ensure(is_new || value.role == Role::input || entry->second.bytes == plan.forms[id].bytes,
           "{} has two sizes", value.name);
    entry->second.bytes = std::max(entry->second.bytes, plan.forms[id].bytes);
  }
  scratch_size_ = std::max(scratch_size_, plan.scratch_bytes);
  auto bound = std::make_unique<Bound>();
  bound->capturable = std::all_of(plan.steps.begin(), plan.steps.end(),
                                  [](const Step& step) { return step.kernel->traits.capturable; });
  bound->first_update = first_update_of(plan);
  bound->plan = std::move(plan);
  plans_.push_back(std::move(bound));
  place_state();
  return plans_.size() - 1;
}

// One role after the other, so that all gradients, for one, lie in one stretch.
void Session::place_state() {
  std::int64_t offset = 0;
  for (int role = 0; role < kRoles; ++role) {
    for (const std::string& name : order_) {
      StateEntry& entry = state_.at(name);
      if (static_cast<int>(entry.role) != role) continue;
      entry.offset = offset;
      offset += aligned(entry.bytes);
    }
  }
  state_size_ = offset;
}

void Session::prepare() {
  ensure(!prepared_, "a session is prepared once");
  state_memory_ = DeviceMemory(device_, static_cast<std::size_t>(state_size_));
  scratch_ = DeviceMemory(device_, static_cast<std::size_t>(scratch_size_));
  device_.fill(state_memory_.data(), std::byte{0}, state_memory_.size());
  for (const auto& bound : plans_) bind(*bound);
  if (nvtx_wanted()) observer_ = (marks_ = std::make_unique<NvtxSteps>(*this)).get();
  prepared_ = true;
  write_step_state();
}

StepState* Session::device_step_state() const {
  return reinterpret_cast<StepState*>(state_memory_.data() + state_.at(kStepState).offset);
}

void Session::write_step_state() { upload_step_state(sizeof(StepState)); }

StepState Session::read_step_state() const {
  StepState state;
  device_.download(&state, reinterpret_cast<const std::byte*>(device_step_state()), sizeof(state));
  device_.synchronize();
  return state;
}

Tensor Session::tensor(const Plan& plan, FormId id) const {
  if (id == kNoForm) return {};
  const Form& form = plan.form(id);
  const Value& value = plan.graph->value(form.value);
  const Plan::Root root = plan.root(id);
  Tensor tensor{.spec = value.spec, .layout = form.layout, .strides = form.strides};
  if (plan.in_state(root.form)) {
    const Value& kept = plan.graph->value(plan.form(root.form).value);
    tensor.data = state_memory_.data() + state_.at(kept.name).offset + root.offset;
  } else {
    tensor.data = scratch_.data() + plan.form(root.form).offset + root.offset;
  }
  return tensor;
}

std::vector<Session::BoundStep> Session::bound_steps(const Plan& plan,
                                                     std::span<const Step> steps) const {
  std::vector<BoundStep> bound;
  for (const Step& step : steps) {
    BoundStep made;
    for (const FormId id : step.inputs) made.inputs.push_back(tensor(plan, id));
    for (const FormId id : step.outputs) made.outputs.push_back(tensor(plan, id));
    bound.push_back(std::move(made));
    BoundStep& kept = bound.back();
    kept.args = {kept.inputs, kept.outputs, scratch_.data() + step.workspace_offset,
                 device_step_state(), device_.queue()};
  }
  return bound;
}

namespace {

std::vector<std::size_t> count_beside_done(const Plan& plan) {
  std::vector<std::size_t> done(plan.steps.size() + 1);
  std::size_t count = 0;
  for (const Step& step : plan.steps) {
    if (!step.runs_beside()) continue;
    ++count;
    for (std::size_t s = static_cast<std::size_t>(step.needed_by); s < done.size(); ++s) {
      done[s] = count;
    }
  }
  return done;
}

}  // namespace

void Session::bind(Bound& bound) const {
  bound.beside_done = count_beside_done(bound.plan);
  bound.setup = bound_steps(bound.plan, bound.plan.setup);
  bound.steps = bound_steps(bound.plan, bound.plan.steps);
}

std::byte* Session::place_for(const std::string& name, std::size_t bytes) {
  const auto found = state_.find(name);
  ensure(found != state_.end(), "the session has no state named {}", name);
  const StateEntry& entry = found->second;
  const auto size = static_cast<std::int64_t>(bytes);
  ensure(size == entry.bytes || (entry.role == Role::input && size < entry.bytes),
         "{} takes {} bytes, not {}", name, entry.bytes, size);
  if (entry.role == Role::parameter || entry.role == Role::statistics) set_up_ = kNoPlan;
  return state_memory_.data() + entry.offset;
}

void Session::write(const std::string& name, std::span<const std::byte> bytes) {
  std::byte* place = place_for(name, bytes.size());
  if (state_.at(name).role == Role::input) {
    device_.stage(place, bytes.data(), bytes.size());
  } else {
    device_.upload(place, bytes.data(), bytes.size());
  }
}

void Session::lend(const std::string& name, std::span<const std::byte> bytes) {
  device_.upload(place_for(name, bytes.size()), bytes.data(), bytes.size());
}

void Session::read(const std::string& name, std::span<std::byte> bytes) const {
  const auto found = state_.find(name);
  ensure(found != state_.end(), "the session has no state named {}", name);
  ensure(static_cast<std::int64_t>(bytes.size()) <= found->second.bytes, "{} has {} bytes, not {}",
         name, found->second.bytes, bytes.size());
  device_.download(bytes.data(), state_memory_.data() + found->second.offset, bytes.size());
  device_.synchronize();
}

std::span<std::byte> Session::place(const std::string& name) const {
  const auto found = state_.find(name);
  ensure(found != state_.end(), "the session has no state named {}", name);
  return {state_memory_.data() + found->second.offset,
          static_cast<std::size_t>(found->second.bytes)};
}

void Session::clear(const std::string& name) {
  const StateEntry& entry = state_.at(name);
  if (entry.role == Role::parameter || entry.role == Role::statistics) set_up_ = kNoPlan;
  device_.fill(state_memory_.data() + entry.offset, std::byte{0},
               static_cast<std::size_t>(entry.bytes));
}

void Session::upload_step_state(std::size_t bytes) {
  if (next_in_flight_ == in_flight_.size()) {
    device_.synchronize();
    next_in_flight_ = 0;
  }
  StepState& copy = in_flight_[next_in_flight_++];
  copy = step_state_;
  device_.upload(reinterpret_cast<std::byte*>(device_step_state()), &copy, bytes);
}

void Session::ask_before(const Bound& bound, std::size_t step) const {
  const bool may_stop = step == 0 || (stops_within_runs() && step <= bound.first_update);
  if (stop_ && may_stop && stop_()) throw Interrupted();
}

// Who observes sees steps one by one, unless they say that they can see more: none runs beside
// another then.
void Session::launch_all(const Bound& bound) {
  const bool overlaps = observer_ == nullptr || observer_->watches_beside();
  const std::size_t before = device_.launched_beside();
  std::size_t done = 0;
  const auto exposed = [&](auto&& body) {
    const Clock::time_point start = Clock::now();
    body();
    exposed_seconds_ += seconds_since(start);
  };
  const auto join = [&](std::size_t step) {
    if (!overlaps || bound.beside_done[step] == done) return;
    done = bound.beside_done[step];
    exposed([&] { device_.join(before + done); });
  };
  for (std::size_t s = 0; s < bound.steps.size(); ++s) {
    if (s > 0) ask_before(bound, s);
    join(s);
    if (observer_ != nullptr) observer_->before(s);
    const Step& step = bound.plan.steps[s];
    if (step.runs_beside() && overlaps) {
      const Kernel& kernel =
          observer_ != nullptr ? observer_->beside(s, *step.kernel) : *step.kernel;
      device_.launch_beside(kernel, bound.steps[s].args);
    } else if (step.kernel->traits.beside) {
      exposed([&] { device_.launch(*step.kernel, bound.steps[s].args); });
    } else {
      device_.launch(*step.kernel, bound.steps[s].args);
    }
    if (observer_ != nullptr) observer_->after(s);
  }
  join(bound.steps.size());
}

void Session::observe(StepObserver* observer) {
  observer_ = observer != nullptr ? observer : marks_.get();
  for (const auto& bound : plans_) {
    bound->recording.reset();
    bound->tried_recording = false;
  }
}

// Plans share the scratch memory: after another plan, its own constants are no longer there.
void Session::set_up(PlanId id) {
  if (set_up_ == id) return;
  const Bound& bound = *plans_[id];
  for (std::size_t s = 0; s < bound.setup.size(); ++s) {
    device_.launch(*bound.plan.setup[s].kernel, bound.setup[s].args);
  }
  set_up_ = id;
}

// The first run is never recorded: libraries set themselves up in it.
void Session::run(PlanId id) {
  ask_before(*plans_[id], 0);
  if (observer_ != nullptr) observer_->before_run(id);
  upload_step_state(kHostStepBytes);
  set_up(id);
  Bound& bound = *plans_[id];
  if (bound.runs++ > 0 && bound.capturable && !bound.tried_recording) {
    bound.tried_recording = true;
    bound.recording = device_.record([&] { launch_all(bound); });
  }
  if (bound.recording) {
    bound.recording->replay();
  } else {
    launch_all(bound);
  }
  if (observer_ != nullptr) observer_->after_run();
}

void Session::run_stepwise(PlanId id, const std::function<void(std::size_t)>& after) {
  upload_step_state(kHostStepBytes);
  set_up(id);
  for (std::size_t s = 0; s < plans_[id]->steps.size(); ++s) {
    ask_before(*plans_[id], s);
    run_step(id, s);
    after(s);
  }
}

void Session::launch_step(PlanId id, std::size_t step) {
  set_up(id);
  device_.launch(*plans_[id]->plan.steps[step].kernel, plans_[id]->steps[step].args);
}

void Session::run_step(PlanId id, std::size_t step) {
  launch_step(id, step);
  device_.synchronize();
}

std::vector<double> Session::read_form(PlanId id, FormId form_id) const {
  Tensor source = tensor(plans_[id]->plan, form_id);
  DeviceMemory converted;
  if (source.layout.kind() == LayoutKind::own) {
    converted = DeviceMemory(device_, static_cast<std::size_t>(source.spec.bytes()));
    const Tensor plain = plain_tensor(converted, source.spec);
    reorder(device_, plan(id), source, plain);
    source = plain;
  }
  std::vector<std::byte> bytes = bytes_of_extent(source);
  device_.download(bytes.data(), source.data, bytes.size());
  device_.synchronize();
  std::vector<double> elements(static_cast<std::size_t>(source.shape().elements()));
  for_each_element(source, [&](std::size_t i, std::int64_t offset) {
    elements[i] = element(bytes.data(), source.spec.dtype, offset);
  });
  return elements;
}

void Session::write_form(PlanId id, FormId form_id, std::span<const double> elements) {
  const Tensor target = tensor(plans_[id]->plan, form_id);
  ensure(static_cast<std::int64_t>(elements.size()) == target.shape().elements(),
         "a value of {} elements is written with {}", target.shape().elements(), elements.size());
  DeviceMemory converted;
  Tensor plain = target;
  if (target.layout.kind() == LayoutKind::own) {
    converted = DeviceMemory(device_, static_cast<std::size_t>(target.spec.bytes()));
    plain = plain_tensor(converted, target.spec);
  }
  // What lies in the gaps of a slice belongs to others.
  std::vector<std::byte> bytes = bytes_of_extent(plain);
  device_.download(bytes.data(), plain.data, bytes.size());
  device_.synchronize();
  for_each_element(plain, [&](std::size_t i, std::int64_t offset) {
    set_element(bytes.data(), plain.spec.dtype, offset, elements[i]);
  });
  device_.upload(plain.data, bytes.data(), bytes.size());
  if (plain.data != target.data) reorder(device_, plan(id), plain, target);
  device_.synchronize();
}

std::vector<double> Session::read_value(PlanId id, ValueId value) const {
  const FormId form = plan(id).form_of(value);
  ensure(form != kNoForm, "the plan does not compute {}", plan(id).graph->value(value).name);
  return read_form(id, form);
}

}  // namespace ridgeline
