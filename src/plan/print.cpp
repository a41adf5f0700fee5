// The Plan as a table for people.

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "plan/memory.h"
#include "plan/plan.h"

namespace ridgeline {
namespace {

std::string place_text(const Plan& plan, FormId id) {
  if (id == kNoForm) return "-";
  const Form& form = plan.form(id);
  const Value& value = plan.graph->value(form.value);
  const Plan::Root root = plan.root(id);
  std::string place;
  if (plan.in_state(root.form)) {
    place = "state";
  } else {
    place = fmt::format("{}", plan.form(root.form).offset + root.offset);
  }
  return fmt::format("{} {} {} {} @{}", value.name, value.spec.shape.text(),
                     name_of(value.spec.dtype), form.layout.text(), place);
}

std::string covered(const Plan& plan, const Step& step) {
  if (step.is_reorder()) {
    return fmt::format("{} -> {}", plan.form(step.inputs[0]).layout.text(),
                       plan.form(step.outputs[0]).layout.text());
  }
  std::string text;
  std::string_view last;
  int repeated = 0;
  const auto flush = [&] {
    if (repeated > 1) text += fmt::format(" x{}", repeated);
  };
  for (const NodeId node : step.nodes) {
    const std::string_view name = name_of(plan.graph->node(node).kind);
    if (name == last) {
      ++repeated;
      continue;
    }
    flush();
    if (!text.empty()) text += " + ";
    text += name;
    last = name;
    repeated = 1;
  }
  flush();
  return text;
}

bool is_backward(Phase phase) {
  return phase == Phase::recompute || phase == Phase::backward_data ||
         phase == Phase::backward_weights;
}

// Forward values that live on because the backward pass reads them: what training costs in memory
// beyond inference. Dropout masks are not among them; they are computed again.
std::string kept_text(const Plan& plan) {
  std::string list;
  std::int64_t total = 0;
  for (std::size_t id = 0; id < plan.forms.size(); ++id) {
    const Form& form = plan.forms[id];
    const Value& value = plan.graph->value(form.value);
    if (value.role != Role::activation || form.view_of != kNoForm || form.first_step < 0) continue;
    const auto last = static_cast<std::size_t>(form.last_step);
    if (!is_backward(plan.steps[last].phase)) continue;
    const auto first = static_cast<std::size_t>(form.first_step);
    if (is_backward(plan.steps[first].phase)) continue;
    total += form.bytes;
    list += fmt::format("  {:<32}{:>12}  steps {} to {}\n", value.name, bytes_text(form.bytes),
                        form.first_step, form.last_step);
  }
  list = fmt::format("\nkept for the backward pass: {}\n{}", bytes_text(total), list);
  std::string again;
  for (const Step& step : plan.steps) {
    if (step.phase == Phase::recompute && !step.is_reorder())
      again += fmt::format("  {}\n", step.layer);
  }
  return again.empty() ? list : list + "computed again in the backward pass:\n" + again;
}

}  // namespace

std::string Plan::text(bool explain) const {
  TextTable table({"#", "phase", "layer", "ops", "kernel", "MFLOP", "KB read", "KB written"},
                  "rllllrrr");
  const auto add = [&](const std::string& number, const Step& step) {
    table.add_row({number, std::string(name_of(step.phase)), step.layer, covered(*this, step),
                   step.kernel_name(),
                   fmt::format("{:.3f}", static_cast<double>(step.work.flops) / 1e6),
                   fmt::format("{:.1f}", static_cast<double>(step.boundary.bytes_read) / 1e3),
                   fmt::format("{:.1f}", static_cast<double>(step.boundary.bytes_written) / 1e3)});
  };
  for (const Step& step : setup) add("once", step);
  for (std::size_t s = 0; s < steps.size(); ++s) add(fmt::format("{}", s), steps[s]);
  std::string text = table.text();

  text += "\nvalues (name, shape, type, layout, byte offset in the scratch arena):\n";
  const auto places = [&](const std::string& number, const Step& step) {
    text += fmt::format("{:>4}", number);
    for (const FormId id : step.inputs) text += "\n     <- " + place_text(*this, id);
    for (const FormId id : step.outputs) text += "\n     -> " + place_text(*this, id);
    text += '\n';
  };
  for (const Step& step : setup) places("once", step);
  for (std::size_t s = 0; s < steps.size(); ++s) places(fmt::format("{}", s), steps[s]);

  text += kept_text(*this);
  const MemoryUse use = memory();
  text += "\nmemory at the fullest step:\n";
  for (int role = 0; role < kRoles; ++role) {
    const auto bytes = use.by_role[static_cast<std::size_t>(role)];
    if (bytes == 0) continue;
    text += fmt::format("  {:<16}{:>12}\n", name_of(static_cast<Role>(role)), bytes_text(bytes));
  }
  text += fmt::format("  {:<16}{:>12}\n", "scratch arena", bytes_text(scratch_bytes));
  const Cost total = work();
  text +=
      fmt::format("work: {} steps, {:.3f} GMAC, {:.3f} GFLOP\n", steps.size(),
                  static_cast<double>(total.macs) / 1e9, static_cast<double>(total.flops) / 1e9);

  if (explain) {
    text += refusals.empty() ? "\nno row was refused\n" : "\nrefused rows:\n";
    for (const Refusal& refusal : refusals) {
      const Node& node = graph->node(refusal.node);
      text += fmt::format("  {} {}: {}: {}\n", node.layer, name_of(node.kind), refusal.row,
                          refusal.reason);
    }
  }
  return text;
}

}  // namespace ridgeline
