#include "measure/profile/memory_timeline.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "measure/step_times.h"
#include "plan/memory.h"

namespace ridgeline {
namespace {

// The layer of the op that makes a value; of what no op makes (parameters, inputs) that of the
// first op that uses it.
std::string layer_of(const Graph& graph, const Value& value) {
  if (value.producer != kNoNode) return graph.node(value.producer).layer;
  return value.users.empty() ? std::string() : graph.node(value.users.front()).layer;
}

// A form's bytes belong to its value's role; a copy of state in another layout is a temporary, as
// in live_bytes().
Role owner_of(const Plan& plan, FormId id) {
  const Form& form = plan.form(id);
  const Role role = plan.graph->value(form.value).role;
  if (!is_persistent(role) || plan.in_state(id)) return role;
  for (std::size_t other = 0; other < plan.forms.size(); ++other) {
    const bool same = plan.forms[other].value == form.value;
    if (same && plan.in_state(static_cast<FormId>(other))) return Role::temporary;
  }
  return role;
}

bool lives_at(const Plan& plan, FormId id, std::int64_t step) {
  const Form& form = plan.form(id);
  if (form.view_of != kNoForm) return false;
  if (plan.in_state(id)) return true;
  return form.first_step >= 0 && form.first_step <= step && step <= form.last_step;
}

}  // namespace

std::int64_t total_of(const LiveBytes& live) {
  return std::accumulate(live.by_role.begin(), live.by_role.end(), std::int64_t{0});
}

std::vector<LiveBytes> memory_timeline(const Plan& plan) {
  std::array<std::int64_t, kRoles> state{};
  for (std::size_t id = 0; id < plan.forms.size(); ++id) {
    if (!plan.in_state(static_cast<FormId>(id))) continue;
    const Role role = plan.graph->value(plan.forms[id].value).role;
    state[static_cast<std::size_t>(role)] += aligned(plan.forms[id].bytes);
  }
  std::vector<LiveBytes> timeline;
  for (const auto& scratch : live_bytes(plan)) {
    LiveBytes live{.step = static_cast<std::int64_t>(timeline.size()), .by_role = state};
    for (std::size_t role = 0; role < scratch.size(); ++role) live.by_role[role] += scratch[role];
    timeline.push_back(live);
  }
  return timeline;
}

std::vector<LiveValue> alive_at(const Plan& plan, std::int64_t step) {
  ensure(step >= 0 && step < static_cast<std::int64_t>(plan.steps.size()), "no step {} of {}", step,
         plan.steps.size());
  const auto last = static_cast<std::int32_t>(plan.steps.size()) - 1;
  std::vector<LiveValue> alive;
  for (std::size_t index = 0; index < plan.forms.size(); ++index) {
    const auto id = static_cast<FormId>(index);
    if (!lives_at(plan, id, step)) continue;
    const Form& form = plan.form(id);
    const Value& value = plan.graph->value(form.value);
    const bool state = plan.in_state(id);
    alive.push_back({.name = value.name,
                     .layer = layer_of(*plan.graph, value),
                     .role = owner_of(plan, id),
                     .bytes = aligned(form.bytes),
                     .first_step = state ? 0 : form.first_step,
                     .last_step = state ? last : form.last_step});
  }
  const Step& now = plan.steps[static_cast<std::size_t>(step)];
  const auto workspace = aligned(static_cast<std::int64_t>(now.kernel->workspace_bytes));
  if (workspace > 0) {
    alive.push_back({.name = now.layer + " workspace",
                     .layer = now.layer,
                     .role = Role::workspace,
                     .bytes = workspace,
                     .first_step = static_cast<std::int32_t>(step),
                     .last_step = static_cast<std::int32_t>(step)});
  }
  std::stable_sort(alive.begin(), alive.end(),
                   [](const LiveValue& a, const LiveValue& b) { return a.bytes > b.bytes; });
  return alive;
}

std::vector<LiveBytes> MemoryTimeline::live() const {
  std::vector<LiveBytes> all;
  all.reserve(positions.size());
  for (const Position& position : positions) all.push_back(position.live);
  return all;
}

MemoryTimeline timeline_of(const Plan& plan) {
  MemoryTimeline timeline;
  timeline.scratch_bytes = plan.scratch_bytes;
  for (const LiveBytes& live : memory_timeline(plan)) {
    const Step& step = plan.steps[static_cast<std::size_t>(live.step)];
    timeline.positions.push_back({.live = live,
                                  .layer = step.layer,
                                  .ops = ops_of(plan, step),
                                  .phase = phase_of(plan, step)});
    if (timeline.peak_step < 0 || total_of(live) > timeline.peak_bytes) {
      timeline.peak_step = live.step;
      timeline.peak_bytes = total_of(live);
    }
  }
  for (std::size_t id = 0; id < plan.forms.size(); ++id) {
    if (!plan.in_state(static_cast<FormId>(id))) continue;
    timeline.state_bytes += aligned(plan.forms[id].bytes);
  }
  if (timeline.peak_step < 0) return timeline;
  timeline.scratch_live_bytes = timeline.peak_bytes - timeline.state_bytes;
  timeline.at_peak = alive_at(plan, timeline.peak_step);
  return timeline;
}

std::vector<MeasuredMemory> measured_memory(std::span<const Reading> readings) {
  static constexpr std::array<std::string_view, 3> kSensors = {"rss_bytes", "gpu_memory_used_bytes",
                                                               "gpu_process_memory_bytes"};
  std::vector<MeasuredMemory> measured;
  for (const Reading& reading : readings) {
    if (std::find(kSensors.begin(), kSensors.end(), reading.sensor) == kSensors.end()) continue;
    auto found = std::find_if(measured.begin(), measured.end(), [&](const MeasuredMemory& known) {
      return known.device == reading.device && known.sensor == reading.sensor;
    });
    if (found == measured.end()) {
      measured.push_back({reading.device, reading.sensor, reading.value, reading.value, 0});
      found = std::prev(measured.end());
    }
    found->low = std::min(found->low, reading.value);
    found->high = std::max(found->high, reading.value);
    ++found->readings;
  }
  return measured;
}

}  // namespace ridgeline
