#include "plan/memory.h"

#include <algorithm>
#include <numeric>

namespace ridgeline {
namespace {

// The last step during which step `s` may still run.
std::int32_t last_step_of(const Step& step, std::int32_t s) {
  return step.runs_beside() ? step.needed_by - 1 : s;
}

// Sets first_step and last_step of every form that is no view, from all its views' uses.
void find_lifetimes(Plan& plan) {
  for (Form& form : plan.forms) form.first_step = form.last_step = -1;
  const auto use = [&](FormId id, std::int32_t step) {
    if (id == kNoForm) return;
    Form& root = plan.forms[static_cast<std::size_t>(plan.root(id).form)];
    if (root.first_step < 0) root.first_step = step;
    root.first_step = std::min(root.first_step, step);
    root.last_step = std::max(root.last_step, step);
  };
  const auto steps = static_cast<std::int32_t>(plan.steps.size());
  for (std::int32_t s = 0; s < steps; ++s) {
    const Step& step = plan.steps[static_cast<std::size_t>(s)];
    for (const auto* forms : {&step.inputs, &step.outputs}) {
      for (const FormId id : *forms) {
        use(id, s);
        use(id, last_step_of(step, s));
      }
    }
  }
  // What the setup makes must outlast every run.
  for (const Step& step : plan.setup) {
    for (const FormId id : step.outputs) {
      use(id, 0);
      use(id, steps - 1);
    }
  }
  for (std::size_t id = 0; id < plan.forms.size(); ++id) {
    if (plan.graph->is_output(plan.forms[id].value)) use(static_cast<FormId>(id), steps - 1);
  }
}

// One span of scratch memory over a span of steps.
struct Block {
  std::int64_t bytes = 0;
  std::int32_t first = 0, last = 0;
  std::int64_t* offset = nullptr;
};

// Largest first, each at the lowest offset that is free during its whole life.
std::int64_t pack(std::vector<Block> blocks) {
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
  std::vector<const Block*> placed;  // by offset
  std::int64_t size = 0;
  for (const Block& block : blocks) {
    std::int64_t offset = 0;
    for (const Block* other : placed) {
      if (other->last < block.first || block.last < other->first) continue;
      if (*other->offset >= offset + block.bytes) break;
      offset = std::max(offset, *other->offset + other->bytes);
    }
    *block.offset = offset;
    const auto position =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [](std::int64_t at, const Block* other) { return at < *other->offset; });
    placed.insert(position, &block);
    size = std::max(size, offset + block.bytes);
  }
  return size;
}

bool needs_scratch(const Plan& plan, std::size_t id) {
  const Form& form = plan.forms[id];
  return form.view_of == kNoForm && form.first_step >= 0 && !plan.in_state(static_cast<FormId>(id));
}

// The forms that setup steps make, by id.
std::vector<char> made_by_setup(const Plan& plan) {
  std::vector<char> made(plan.forms.size());
  for (const Step& step : plan.setup) {
    for (const FormId id : step.outputs) made[static_cast<std::size_t>(id)] = 1;
  }
  return made;
}

}  // namespace

void set_steps_beside(Plan& plan) {
  const auto roots = [&](const std::vector<FormId>& forms, std::vector<FormId>& found) {
    for (const FormId id : forms) {
      if (id != kNoForm) found.push_back(plan.root(id).form);
    }
  };
  const auto meet = [](const std::vector<FormId>& a, const std::vector<FormId>& b) {
    return std::any_of(a.begin(), a.end(),
                       [&](FormId id) { return std::find(b.begin(), b.end(), id) != b.end(); });
  };
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    Step& step = plan.steps[s];
    if (!step.kernel->traits.beside) continue;
    std::vector<FormId> written, touched;
    roots(step.outputs, written);
    roots(step.inputs, touched);
    roots(step.outputs, touched);
    std::size_t next = s + 1;
    for (; next < plan.steps.size(); ++next) {
      std::vector<FormId> read_there, written_there;
      roots(plan.steps[next].inputs, read_there);
      roots(plan.steps[next].outputs, written_there);
      if (meet(read_there, written) || meet(written_there, touched)) break;
    }
    step.needed_by = static_cast<std::int32_t>(next);
  }
}

namespace {

// Whether a step may write `dst` where its first input lies: that is scratch, ends with this step,
// and no other input shares it.
bool fits_in_place(const Plan& plan, const Step& step, std::int32_t now, FormId dst) {
  if (dst == kNoForm) return false;
  const Form& output = plan.form(dst);
  const FormId src = step.inputs[0];
  const Form& input = plan.form(src);
  const Plan::Root root = plan.root(src);
  const Form& memory = plan.form(root.form);
  const auto same_memory = std::count_if(step.inputs.begin(), step.inputs.end(), [&](FormId id) {
    return plan.root(id).form == root.form;
  });
  const bool whole = root.offset == 0 && memory.bytes == input.bytes;
  const bool fits =
      output.bytes == input.bytes && output.layout == input.layout &&
      output.strides == input.strides &&
      plan.graph->value(output.value).spec.dtype == plan.graph->value(input.value).spec.dtype;
  return output.view_of == kNoForm && !plan.in_state(dst) && output.first_step == now &&
         !plan.in_state(root.form) && memory.last_step == now && whole && fits && same_memory == 1;
}

}  // namespace

void join_in_place(Plan& plan) {
  find_lifetimes(plan);
  const std::vector<char> constant = made_by_setup(plan);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (!step.kernel->traits.in_place || step.inputs.empty()) continue;
    const FormId src = step.inputs[0], root = plan.root(src).form;
    if (constant[static_cast<std::size_t>(root)] != 0) continue;
    const auto now = static_cast<std::int32_t>(s);
    const auto dst = std::find_if(step.outputs.begin(), step.outputs.end(), [&](FormId output) {
      return fits_in_place(plan, step, now, output);
    });
    if (dst == step.outputs.end()) continue;
    Form& output = plan.forms[static_cast<std::size_t>(*dst)];
    output.view_of = src;
    plan.forms[static_cast<std::size_t>(root)].last_step = output.last_step;
  }
}

void plan_memory(Plan& plan) {
  find_lifetimes(plan);
  std::vector<Block> blocks;
  // The setup's own steps lie before step 0, each at a time of its own.
  const auto setup_steps = static_cast<std::int32_t>(plan.setup.size());
  const std::vector<char> constant = made_by_setup(plan);
  for (std::size_t id = 0; id < plan.forms.size(); ++id) {
    Form& form = plan.forms[id];
    if (!needs_scratch(plan, id)) continue;
    const std::int32_t first = constant[id] != 0 ? -setup_steps : form.first_step;
    blocks.push_back({aligned(form.bytes), first, form.last_step, &form.offset});
  }
  for (std::int32_t s = 0; s < setup_steps; ++s) {
    Step& step = plan.setup[static_cast<std::size_t>(s)];
    const auto bytes = aligned(static_cast<std::int64_t>(step.kernel->workspace_bytes));
    if (bytes > 0)
      blocks.push_back({bytes, s - setup_steps, s - setup_steps, &step.workspace_offset});
  }
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    Step& step = plan.steps[s];
    const auto now = static_cast<std::int32_t>(s);
    const auto bytes = aligned(static_cast<std::int64_t>(step.kernel->workspace_bytes));
    if (bytes > 0) blocks.push_back({bytes, now, last_step_of(step, now), &step.workspace_offset});
  }
  plan.scratch_bytes = pack(std::move(blocks));
}

std::vector<std::array<std::int64_t, kRoles>> live_bytes(const Plan& plan) {
  std::vector<std::array<std::int64_t, kRoles>> live(plan.steps.size());
  std::vector<char> kept(plan.graph->values().size());  // values that lie in the state arena
  for (std::size_t id = 0; id < plan.forms.size(); ++id) {
    if (plan.in_state(static_cast<FormId>(id))) {
      kept[static_cast<std::size_t>(plan.forms[id].value)] = 1;
    }
  }
  for (std::size_t id = 0; id < plan.forms.size(); ++id) {
    if (!needs_scratch(plan, id)) continue;
    const Form& form = plan.forms[id];
    const Role role = plan.graph->value(form.value).role;
    // A reordered copy of state is a temporary of this step.
    const bool copy = is_persistent(role) && kept[static_cast<std::size_t>(form.value)] != 0;
    const Role owner = copy ? Role::temporary : role;
    for (auto s = form.first_step; s <= form.last_step; ++s) {
      live[static_cast<std::size_t>(s)][static_cast<std::size_t>(owner)] += aligned(form.bytes);
    }
  }
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const auto bytes = aligned(static_cast<std::int64_t>(plan.steps[s].kernel->workspace_bytes));
    const auto now = static_cast<std::int32_t>(s);
    for (auto at = now; at <= last_step_of(plan.steps[s], now); ++at) {
      live[static_cast<std::size_t>(at)][static_cast<std::size_t>(Role::workspace)] += bytes;
    }
  }
  return live;
}

}  // namespace ridgeline
