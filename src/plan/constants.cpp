#include "plan/constants.h"

#include <algorithm>

namespace ridgeline {
namespace {

// Whether a step makes another form of its inputs and nothing else.
bool converts(const Plan& plan, const Step& step) {
  return std::all_of(step.nodes.begin(), step.nodes.end(),
                     [&](NodeId node) { return plan.graph->node(node).kind == OpKind::cast; });
}

bool is_weight(const Plan& plan, FormId id) {
  const Role role = plan.graph->value(plan.form(id).value).role;
  return plan.in_state(id) && (role == Role::parameter || role == Role::statistics);
}

}  // namespace

void set_constants_apart(Plan& plan) {
  std::vector<char> constant(plan.forms.size());
  const auto is_constant = [&](FormId id) {
    const FormId root = plan.root(id).form;
    return constant[static_cast<std::size_t>(root)] != 0 || is_weight(plan, root);
  };
  // Within another form's memory, a result would not keep its place.
  const auto has_own_memory = [&](FormId id) {
    return id != kNoForm && plan.form(id).view_of == kNoForm && !plan.in_state(id);
  };
  std::vector<Step> varying;
  for (Step& step : plan.steps) {
    const bool once = converts(plan, step) &&
                      std::all_of(step.inputs.begin(), step.inputs.end(), is_constant) &&
                      std::all_of(step.outputs.begin(), step.outputs.end(), has_own_memory);
    if (!once) {
      varying.push_back(std::move(step));
      continue;
    }
    for (const FormId output : step.outputs) constant[static_cast<std::size_t>(output)] = 1;
    plan.setup.push_back(std::move(step));
  }
  plan.steps = std::move(varying);
}

}  // namespace ridgeline
