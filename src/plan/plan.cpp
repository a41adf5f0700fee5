#include "plan/plan.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "plan/constants.h"
#include "plan/layouts.h"
#include "plan/memory.h"
#include "plan/select.h"
#include "plan/views.h"

namespace ridgeline {

std::string Step::kernel_name() const {
  std::string name = provider + ':' + row;
  if (!kernel->implementation.empty()) name += '/' + kernel->implementation;
  return name;
}

bool pass_enabled(const PlanOptions& options, std::string_view pass) {
  const auto& disabled = options.disabled_passes;
  return std::find(disabled.begin(), disabled.end(), pass) == disabled.end();
}

Plan::Root Plan::root(FormId id) const {
  std::int64_t offset = 0;
  while (form(id).view_of != kNoForm) {
    offset += form(id).view_offset;
    id = form(id).view_of;
  }
  return {id, offset};
}

bool Plan::in_state(FormId id) const {
  const Form& f = form(id);
  return f.view_of == kNoForm && is_persistent(graph->value(f.value).role) &&
         f.layout.kind() == LayoutKind::plain;
}

FormId Plan::form_of(ValueId value) const {
  FormId any = kNoForm;
  for (std::size_t id = 0; id < forms.size(); ++id) {
    if (forms[id].value != value) continue;
    if (forms[id].layout == Layout::plain()) return static_cast<FormId>(id);
    if (any == kNoForm) any = static_cast<FormId>(id);
  }
  return any;
}

MemoryUse Plan::memory() const {
  MemoryUse use;
  for (std::size_t id = 0; id < forms.size(); ++id) {
    if (!in_state(static_cast<FormId>(id))) continue;
    const Role role = graph->value(forms[id].value).role;
    use.by_role[static_cast<std::size_t>(role)] += aligned(forms[id].bytes);
  }
  const auto live = live_bytes(*this);
  const auto sum = [](const auto& roles) {
    return std::accumulate(roles.begin(), roles.end(), std::int64_t{0});
  };
  const auto peak = std::max_element(live.begin(), live.end(),
                                     [&](const auto& a, const auto& b) { return sum(a) < sum(b); });
  if (peak != live.end()) {
    for (std::size_t role = 0; role < peak->size(); ++role) use.by_role[role] += (*peak)[role];
  }
  use.scratch_peak = scratch_bytes;
  return use;
}

Cost Plan::work() const {
  Cost total;
  for (const Step& step : steps) total += step.work;
  return total;
}

Plan make_plan(Graph graph, const PlanOptions& options) {
  Plan plan;
  plan.graph = std::make_shared<const Graph>(std::move(graph));
  plan.providers = options.providers;
  std::vector<Tile> tiles = select_tiles(*plan.graph, options, plan.refusals);
  settle_layouts(plan, std::move(tiles), options);
  if (pass_enabled(options, "slices")) join_slices(plan);
  if (options.constant_weights && pass_enabled(options, "constants")) set_constants_apart(plan);
  if (pass_enabled(options, "overlap")) set_steps_beside(plan);
  if (pass_enabled(options, "inplace")) join_in_place(plan);
  plan_memory(plan);
  return plan;
}

}  // namespace ridgeline
