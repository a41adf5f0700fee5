#include "plan/layouts.h"

#include <algorithm>

#include "base/error.h"

namespace ridgeline {
namespace {

std::int64_t bytes_in(const TensorSpec& spec, const Layout& layout) {
  return layout.kind() == LayoutKind::own ? static_cast<std::int64_t>(layout.provider()->bytes())
                                          : spec.bytes();
}

// Plain and nhwc are the same bytes where there is one channel or one pixel.
bool same_bytes(const TensorSpec& spec, const Layout& a, const Layout& b) {
  if (a == b) return true;
  if (a.kind() == LayoutKind::own || b.kind() == LayoutKind::own) return false;
  return spec.shape[1] == 1 || spec.shape[2] * spec.shape[3] == 1;
}

class Settling {
 public:
  Settling(Plan& plan, const PlanOptions& options)
      : plan_(plan), graph_(*plan.graph), options_(options), forms_of_(graph_.values().size()) {}

  void run(std::vector<Tile> tiles) {
    for (std::size_t id = 0; id < graph_.values().size(); ++id) {
      if (graph_.values()[id].producer == kNoNode) {
        add_form(static_cast<ValueId>(id), Layout::plain());
      }
    }
    for (const Tile& tile : tiles) {
      if (tile.row == nullptr) {
        add_reshape(tile.nodes[0]);
      } else {
        add_step(tile);
      }
    }
    for (const ValueId output : graph_.outputs()) {
      const NodeId producer = graph_.value(output).producer;
      if (producer != kNoNode) form_in(output, Layout::plain(), graph_.node(producer));
    }
  }

 private:
  FormId add_form(ValueId value, const Layout& layout) {
    const TensorSpec& spec = graph_.value(value).spec;
    Form form{.value = value, .layout = layout, .bytes = bytes_in(spec, layout)};
    if (layout.kind() != LayoutKind::own) form.strides = dense_strides(spec.shape, layout.kind());
    return add_form(std::move(form));
  }

  FormId add_form(Form form) {
    const auto id = static_cast<FormId>(plan_.forms.size());
    forms_of_[static_cast<std::size_t>(form.value)].push_back(id);
    plan_.forms.push_back(std::move(form));
    return id;
  }

  FormId add_view(ValueId value, const Layout& layout, FormId of) {
    Form form{.value = value, .layout = layout, .bytes = plan_.form(of).bytes, .view_of = of};
    form.strides = dense_strides(graph_.value(value).spec.shape, layout.kind());
    return add_form(std::move(form));
  }

  // The form of a value in a layout, made by a reorder step where it is not there yet.
  FormId form_in(ValueId value, const Layout& layout, const Node& user) {
    const std::vector<FormId> forms = forms_of_[static_cast<std::size_t>(value)];
    ensure(!forms.empty(), "value {} is used before it is computed", graph_.value(value).name);
    for (const FormId id : forms) {
      if (plan_.form(id).layout == layout) return id;
    }
    const TensorSpec& spec = graph_.value(value).spec;
    for (const FormId id : forms) {
      if (same_bytes(spec, plan_.form(id).layout, layout)) return add_view(value, layout, id);
    }
    const FormId made = add_form(value, layout);
    add_reorder(forms.front(), made, user);
    return made;
  }

  void add_reorder(FormId from, FormId to, const Node& user) {
    const TensorSpec& spec = graph_.value(plan_.form(from).value).spec;
    for (const Backend* backend : options_.providers) {
      std::unique_ptr<Kernel> kernel =
          backend->make_reorder(spec, plan_.form(from).layout, plan_.form(to).layout);
      if (kernel == nullptr) continue;
      Step step;
      step.layer = user.layer;
      step.phase = user.phase;
      step.provider = backend->name;
      step.row = "reorder";
      step.kernel = std::move(kernel);
      step.inputs = {from};
      step.outputs = {to};
      step.boundary = {.bytes_read = spec.bytes(), .bytes_written = spec.bytes()};
      plan_.steps.push_back(std::move(step));
      return;
    }
    fail("no backend can reorder {} from {} to {}", graph_.value(plan_.form(from).value).name,
         plan_.form(from).layout.text(), plan_.form(to).layout.text());
  }

  void add_reshape(NodeId id) {
    const Node& node = graph_.node(id);
    const FormId src = form_in(node.inputs[0], Layout::plain(), node);
    add_view(node.outputs[0], Layout::plain(), src);
  }

  void add_step(const Tile& tile) {
    const Problem problem = make_problem(graph_, tile.nodes, options_.measure);
    const Node& first = graph_.node(tile.nodes[0]);
    std::vector<Layout> present;
    for (const ValueId input : problem.inputs) {
      const auto& forms = forms_of_[static_cast<std::size_t>(input)];
      ensure(!forms.empty(), "value {} is used before it is computed", graph_.value(input).name);
      present.push_back(plan_.form(forms.front()).layout);
    }
    Step step;
    step.nodes = tile.nodes;
    step.layer = first.layer;
    // What is computed again inside a larger step belongs to that step.
    const Node& last = graph_.node(tile.nodes.back());
    step.phase = first.phase == Phase::recompute ? last.phase : first.phase;
    step.provider = tile.backend->name;
    step.row = tile.row->name;
    step.kernel = tile.row->make(problem, present);
    const Kernel& kernel = *step.kernel;
    ensure(kernel.input_layouts.size() == problem.inputs.size() &&
               kernel.output_layouts.size() == problem.outputs.size(),
           "{} tells too few layouts for {}", step.row, problem.text());

    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
      step.inputs.push_back(form_in(problem.inputs[i], kernel.input_layouts[i], first));
      step.boundary.bytes_read += problem.input(i).bytes();
    }
    std::vector<std::pair<FormId, FormId>> canonical;  // a state's form as computed, and as kept
    for (std::size_t i = 0; i < problem.outputs.size(); ++i) {
      const FormId form =
          add_output(problem.outputs[i], kernel.output_layouts[i], *tile.backend, canonical);
      step.outputs.push_back(form);
      if (form != kNoForm) step.boundary.bytes_written += problem.output(i).bytes();
    }
    for (const NodeId node : tile.nodes) step.work += graph_.cost(node);
    step.boundary.macs = step.work.macs;
    step.boundary.flops =
        static_cast<std::int64_t>(static_cast<double>(step.work.flops) * kernel.flop_factor);
    plan_.steps.push_back(std::move(step));
    for (const auto& [computed, kept] : canonical) add_reorder(computed, kept, first);
  }

  FormId add_output(ValueId id, const Layout& layout, const Backend& backend,
                    std::vector<std::pair<FormId, FormId>>& canonical) {
    const Value& value = graph_.value(id);
    // A version lies where the value that it updates lies.
    if (value.version_of != kNoValue) {
      for (const FormId former : forms_of_[static_cast<std::size_t>(value.version_of)]) {
        if (plan_.form(former).layout == layout) return add_view(id, layout, former);
      }
      fail("{} must be updated in the layout of what it updates", value.name);
    }
    if (!is_persistent(value.role)) {
      if (value.users.empty() && !graph_.is_output(id)) return kNoForm;
      return add_form(id, layout);
    }
    // State is kept plain, but for gradients that are no outputs, where the optimizers take them as
    // they are.
    const bool same = same_bytes(value.spec, layout, Layout::plain());
    if (value.role == Role::gradient && backend.gradients_in_any_layout && !same &&
        !graph_.is_output(id)) {
      return add_form(id, layout);
    }
    const FormId kept = add_form(id, Layout::plain());
    if (layout == Layout::plain()) return kept;
    if (same) return add_view(id, layout, kept);
    const FormId computed = add_form(id, layout);
    canonical.emplace_back(computed, kept);
    return computed;
  }

  Plan& plan_;
  const Graph& graph_;
  const PlanOptions& options_;
  std::vector<std::vector<FormId>> forms_of_;
};

}  // namespace

void settle_layouts(Plan& plan, std::vector<Tile> tiles, const PlanOptions& options) {
  Settling(plan, options).run(std::move(tiles));
}

}  // namespace ridgeline
