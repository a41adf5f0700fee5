#include "support/op_cases.h"

namespace ridgeline::testing {
namespace {

Phase phase_of(OpKind kind) {
  switch (kind) {
    case OpKind::normalize:
      return Phase::input;
    case OpKind::conv2d_backward_weights:
    case OpKind::linear_backward_weights:
    case OpKind::bias_backward:
    case OpKind::bn_backward_reduce:
    case OpKind::multiply_backward:
    case OpKind::accumulate:
    case OpKind::all_reduce:
      return Phase::backward_weights;
    case OpKind::conv2d_backward_data:
    case OpKind::linear_backward_data:
    case OpKind::activation_backward:
    case OpKind::pool_backward:
    case OpKind::bn_backward_apply:
    case OpKind::layer_norm_backward:
    case OpKind::resize_backward:
    case OpKind::softmax_cross_entropy_backward:
      return Phase::backward_data;
    case OpKind::overflow_guard:
    case OpKind::clip_norm:
    case OpKind::sgd:
    case OpKind::adam:
      return Phase::optimizer;
    default:
      return Phase::forward;
  }
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> cases;
  add_conv2d_cases(cases);
  add_linear_cases(cases);
  add_elementwise_cases(cases);
  add_shape_cases(cases);
  add_pool_cases(cases);
  add_batch_norm_cases(cases);
  add_layer_norm_cases(cases);
  add_multiply_cases(cases);
  add_training_cases(cases);
  add_pattern_cases(cases);
  add_channel_pattern_cases(cases);
  add_conv_norm_cases(cases);
  return cases;
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = all_cases();
  return cases;
}

CaseBuilder::CaseBuilder(std::string name) {
  case_.name = std::move(name);
  case_.state.learning_rate = 0.1;
  case_.state.seed = 7;
  case_.state.random_step = 3;
  case_.state.epoch = 2;
}

ValueId CaseBuilder::add(Shape shape, DType dtype, Role role, Data data) {
  case_.data.push_back(data);
  return case_.graph.add_value("v" + std::to_string(case_.data.size() - 1), {shape, dtype}, role);
}

ValueId CaseBuilder::input(Shape shape, Data data, DType dtype) {
  // Rows of a batch count unless the case says otherwise.
  if (shape.rank() > 0) case_.state.valid_rows = shape[0];
  return add(shape, dtype, Role::input, data);
}

ValueId CaseBuilder::parameter(Shape shape, Data data) {
  return add(shape, DType::f32, Role::parameter, data);
}

ValueId CaseBuilder::state(Shape shape, Role role, Data data, DType dtype) {
  return add(shape, dtype, role, data);
}

ValueId CaseBuilder::node(OpKind kind, std::vector<ValueId> inputs, Attributes attributes) {
  const std::string layer = "n" + std::to_string(case_.graph.nodes().size());
  return case_.graph.add_node(kind, std::move(attributes), std::move(inputs), layer,
                              phase_of(kind))[0];
}

OpCase CaseBuilder::done(bool big) {
  for (std::size_t id = 0; id < case_.graph.values().size(); ++id) {
    const Value& value = case_.graph.values()[id];
    if (value.producer != kNoNode && value.users.empty()) {
      case_.graph.mark_output(static_cast<ValueId>(id));
    }
  }
  case_.big = big;
  return std::move(case_);
}

}  // namespace ridgeline::testing
