#include "plan/views.h"

#include <algorithm>

namespace ridgeline {
namespace {

class Slicing {
 public:
  explicit Slicing(Plan& plan)
      : plan_(plan), touching_(plan.forms.size()), has_views_(plan.forms.size()) {
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      for (const auto* forms : {&plan.steps[s].inputs, &plan.steps[s].outputs}) {
        for (const FormId form : *forms) {
          if (form != kNoForm) touching_[static_cast<std::size_t>(form)].push_back(s);
        }
      }
    }
    for (const Form& form : plan.forms) {
      if (form.view_of != kNoForm) has_views_[static_cast<std::size_t>(form.view_of)] = 1;
    }
  }

  void run() {
    std::vector<char> idle(plan_.steps.size());
    // From the last concatenation to the first: in a chain of growing ones, the longest holds all.
    for (std::size_t s = plan_.steps.size(); s-- > 0;) {
      if (is(s, OpKind::concat)) idle[s] = join_concat(s);
    }
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      if (is(s, OpKind::slice)) idle[s] = view_slice(s);
      if (is(s, OpKind::split)) idle[s] = view_parts(s);
    }
    std::size_t kept = 0;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      if (idle[s] != 0) continue;
      if (kept != s) plan_.steps[kept] = std::move(plan_.steps[s]);
      ++kept;
    }
    plan_.steps.resize(kept);
  }

 private:
  [[nodiscard]] bool is(std::size_t step, OpKind kind) const {
    const Step& s = plan_.steps[step];
    return s.nodes.size() == 1 && plan_.graph->node(s.nodes[0]).kind == kind;
  }

  Form& form(FormId id) { return plan_.forms[static_cast<std::size_t>(id)]; }

  // Whether the form may become a slice: it has its own memory and all who touch it can take gaps.
  [[nodiscard]] bool can_be_slice(FormId id) const {
    const Form& f = plan_.form(id);
    if (f.layout.kind() != LayoutKind::nhwc || f.view_of != kNoForm || plan_.in_state(id) ||
        has_views_[static_cast<std::size_t>(id)] != 0 || plan_.graph->is_output(f.value)) {
      return false;
    }
    const auto& steps = touching_[static_cast<std::size_t>(id)];
    return std::all_of(steps.begin(), steps.end(),
                       [&](std::size_t s) { return plan_.steps[s].kernel->traits.slices; });
  }

  void make_slice(FormId id, FormId of, std::int64_t first_channel) {
    Form& slice = form(id);
    const TensorSpec& spec = plan_.graph->value(slice.value).spec;
    slice.view_of = of;
    slice.strides = form(of).strides;
    slice.view_offset =
        first_channel * slice.strides[1] * static_cast<std::int64_t>(size_of(spec.dtype));
    has_views_[static_cast<std::size_t>(of)] = 1;
  }

  char join_concat(std::size_t s) {
    const Step& step = plan_.steps[s];
    const FormId dst = step.outputs[0];
    const auto channels = [&](FormId id) {
      return plan_.graph->value(form(id).value).spec.shape[1];
    };
    if (dst == kNoForm || form(dst).layout.kind() != LayoutKind::nhwc ||
        step.inputs.size() != plan_.graph->node(step.nodes[0]).inputs.size()) {
      return 0;
    }
    // All inputs already lie side by side in a longer concatenation: so does the output.
    const Form& front = form(step.inputs[0]);
    std::int64_t expected = front.view_offset;
    bool adjacent = front.view_of != kNoForm && can_be_slice(dst);
    for (const FormId id : step.inputs) {
      adjacent = adjacent && form(id).view_of == front.view_of &&
                 form(id).view_offset == expected && form(id).strides == front.strides;
      expected += form(id).bytes / std::max<std::int64_t>(1, pixels(id));
    }
    if (adjacent) {
      Form& whole = form(dst);
      whole.view_of = front.view_of;
      whole.view_offset = front.view_offset;
      whole.strides = front.strides;
      return 1;
    }
    if (!std::all_of(step.inputs.begin(), step.inputs.end(),
                     [&](FormId id) { return can_be_slice(id); }) ||
        plan_.in_state(dst)) {
      return 0;
    }
    std::int64_t channel = 0;
    for (const FormId id : step.inputs) {
      make_slice(id, dst, channel);
      channel += channels(id);
    }
    return 1;
  }

  char view_slice(std::size_t s) {
    const Step& step = plan_.steps[s];
    const FormId src = step.inputs[0], dst = step.outputs[0];
    if (dst == kNoForm || form(src).layout.kind() != LayoutKind::nhwc || !can_be_slice(dst)) {
      return 0;
    }
    const auto& attributes = std::get<SliceAttributes>(plan_.graph->node(step.nodes[0]).attributes);
    make_slice(dst, src, attributes.begin);
    return 1;
  }

  char view_parts(std::size_t s) {
    const Step& step = plan_.steps[s];
    const FormId src = step.inputs[0];
    const bool all = std::all_of(step.outputs.begin(), step.outputs.end(), [&](FormId part) {
      return part == kNoForm || can_be_slice(part);
    });
    if (!all || form(src).layout.kind() != LayoutKind::nhwc) return 0;
    const auto& attributes = std::get<SplitAttributes>(plan_.graph->node(step.nodes[0]).attributes);
    std::int64_t channel = 0;
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i] != kNoForm) make_slice(step.outputs[i], src, channel);
      channel += attributes.channels[i];
    }
    return 1;
  }

  [[nodiscard]] std::int64_t pixels(FormId id) const {
    const Shape& shape = plan_.graph->value(plan_.form(id).value).spec.shape;
    return shape[0] * shape[2] * shape[3];
  }

  Plan& plan_;
  std::vector<std::vector<std::size_t>> touching_;  // steps that read or write a form
  std::vector<char> has_views_;
};

}  // namespace

void join_slices(Plan& plan) { Slicing(plan).run(); }

}  // namespace ridgeline
