// Softmax, the loss and the optimizers.

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "support/onnx_translator.h"

namespace ridgeline::onnx {
namespace {

// A value as rows along one axis: row (before, after), element `axis`. Where rows lie in our op is
// told by `order`, so that rows that do not count can come last.
struct Rows {
  std::int64_t before = 1, length = 1, after = 1;
  std::vector<std::int64_t> order;  // order[place] = row

  [[nodiscard]] std::int64_t count() const { return before * after; }
  [[nodiscard]] std::size_t offset(std::int64_t row, std::int64_t element) const {
    return static_cast<std::size_t>((row / after * length + element) * after + row % after);
  }
};

Rows rows_along(const Dims& dims, std::size_t axis, std::size_t axis_end) {
  Rows rows{product(dims, 0, axis),
            product(dims, axis, axis_end),
            product(dims, axis_end, dims.size()),
            {}};
  for (std::int64_t row = 0; row < rows.count(); ++row) rows.order.push_back(row);
  return rows;
}

std::vector<double> gather(const Rows& rows, const std::vector<double>& numbers) {
  std::vector<double> result;
  for (const std::int64_t row : rows.order) {
    for (std::int64_t i = 0; i < rows.length; ++i) result.push_back(numbers[rows.offset(row, i)]);
  }
  return result;
}

std::vector<double> scatter(const Rows& rows, const std::vector<double>& numbers) {
  std::vector<double> result(numbers.size());
  std::size_t from = 0;
  for (const std::int64_t row : rows.order) {
    for (std::int64_t i = 0; i < rows.length; ++i) result[rows.offset(row, i)] = numbers[from++];
  }
  return result;
}

struct Loss {
  ValueId mean, probabilities;
};

Loss softmax_loss(Translator& t, const Rows& rows, const std::vector<double>& logits,
                  const std::vector<double>& labels, std::int64_t valid_rows) {
  t.state().valid_rows = valid_rows;
  const std::vector<ValueId> outputs =
      t.node(OpKind::softmax_cross_entropy, LossAttributes{},
             {t.input(gather(rows, logits), {rows.count(), rows.length}),
              t.input(labels, {rows.count()}, Role::input, DType::i32)});
  return {outputs[0], outputs[1]};
}

void derive_probabilities(Translator& t, const std::string& name, const Dims& dims,
                          const Rows& rows, ValueId probabilities, bool logarithm) {
  t.derive(name, dims, {probabilities}, [=](const ReadValue& read) {
    std::vector<double> result = scatter(rows, read(probabilities));
    if (logarithm) {
      for (double& number : result) number = std::log(number);
    }
    return result;
  });
}

// Before version 13, softmax ran over all axes from the given one on.
void softmax_of(Translator& t, const OpNode& node, bool logarithm) {
  const Array& src = t.floats(node.inputs[0]);
  const bool single_axis = t.opset() >= 13;
  const std::size_t axis = axis_of(node.integer("axis", single_axis ? -1 : 1), src.dims);
  const Rows rows = rows_along(src.dims, axis, single_axis ? axis + 1 : src.dims.size());
  const std::vector<double> labels(static_cast<std::size_t>(rows.count()), 0.0);
  const Loss loss = softmax_loss(t, rows, src.numbers(), labels, rows.count());
  derive_probabilities(t, node.outputs[0], src.dims, rows, loss.probabilities, logarithm);
}

void softmax(Translator& t, const OpNode& node) { softmax_of(t, node, false); }
void log_softmax(Translator& t, const OpNode& node) { softmax_of(t, node, true); }

// The rows that count, then those whose label is to be ignored.
std::int64_t put_ignored_last(const OpNode& node, const std::vector<double>& labels, Rows& rows) {
  const Attribute* ignored = node.find("ignore_index");
  if (ignored == nullptr) return rows.count();
  const auto counts = [&](std::int64_t row) {
    return labels[static_cast<std::size_t>(row)] != static_cast<double>(ignored->integer);
  };
  const auto middle = std::stable_partition(rows.order.begin(), rows.order.end(), counts);
  return middle - rows.order.begin();
}

void softmax_cross_entropy(Translator& t, const OpNode& node) {
  if (node.has_input(2)) unsupported("the loss has no class weights");
  const Array& logits = t.floats(node.inputs[0]);
  const std::vector<double> labels = t.constant(node.inputs[1]).numbers();
  Rows rows = rows_along(logits.dims, 1, 2);
  const std::int64_t valid = put_ignored_last(node, labels, rows);
  std::vector<double> ordered(labels.size(), 0.0);
  for (std::int64_t place = 0; place < valid; ++place) {
    const auto p = static_cast<std::size_t>(place);
    ordered[p] = labels[static_cast<std::size_t>(rows.order[p])];
  }
  const Loss loss = softmax_loss(t, rows, logits.numbers(), ordered, valid);

  const std::string reduction = node.text("reduction", "mean");
  if (reduction == "mean") {
    t.give(node.outputs[0], {}, loss.mean);
  } else if (reduction == "sum") {
    t.derive(node.outputs[0], {}, {loss.mean}, [=](const ReadValue& read) {
      return std::vector<double>{read(loss.mean)[0] * static_cast<double>(valid)};
    });
  } else {
    t.derive(node.outputs[0], t.dims(node.inputs[1]), {loss.mean, loss.probabilities},
             [=](const ReadValue& read) {
               const std::vector<double> probabilities = read(loss.probabilities);
               std::vector<double> losses(ordered.size(), 0.0);
               for (std::int64_t place = 0; place < valid; ++place) {
                 const auto p = static_cast<std::size_t>(place);
                 const auto label = static_cast<std::int64_t>(ordered[p]);
                 losses[static_cast<std::size_t>(rows.order[p])] = -std::log(
                     probabilities[static_cast<std::size_t>(place * rows.length + label)]);
               }
               return losses;
             });
  }
  if (node.has_output(1)) {
    derive_probabilities(t, node.outputs[1], logits.dims, rows, loss.probabilities, true);
  }
}

void negative_log_likelihood(Translator&, const OpNode&) {
  unsupported("takes log-probabilities, our loss takes logits");
}

// Optimizers have R (the rate), T (steps done), then all parameters, all gradients, all states.
struct OptimizerInputs {
  double rate, steps;
  std::size_t parameters;
};

OptimizerInputs optimizer_inputs(Translator& t, const OpNode& node, std::size_t kinds) {
  return {t.constant(node.inputs[0]).numbers()[0], t.constant(node.inputs[1]).numbers()[0],
          (node.inputs.size() - 2) / kinds};
}

ValueId optimizer_value(Translator& t, const OpNode& node, std::size_t index, Role role) {
  const Array& array = t.floats(node.inputs[index]);
  return t.input(array.numbers(), {elements_of(array.dims)}, role);
}

void momentum(Translator& t, const OpNode& node) {
  const OptimizerInputs inputs = optimizer_inputs(t, node, 3);
  // The gradient counts in full in the first step, and beta times after it.
  if (inputs.steps > 0.0 && node.real("beta", 1.0) != 1.0) {
    unsupported("gradients are damped, which our SGD does not");
  }
  const SgdAttributes attributes{.momentum = node.real("alpha", 0.9),
                                 .weight_decay = node.real("norm_coefficient", 0.0),
                                 .nesterov = node.text("mode", "standard") == "nesterov"};
  t.state().learning_rate = inputs.rate;
  const std::size_t count = inputs.parameters;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<ValueId> updated =
        t.node(OpKind::sgd, attributes,
               {optimizer_value(t, node, 2 + i, Role::parameter),
                optimizer_value(t, node, 2 + count + i, Role::input),
                optimizer_value(t, node, 2 + 2 * count + i, Role::optimizer_state)},
               Phase::optimizer);
    t.give(node.outputs[i], t.dims(node.inputs[2 + i]), updated[0]);
    t.give(node.outputs[count + i], t.dims(node.inputs[2 + i]), updated[1]);
  }
}

// ONNX adds epsilon before the bias correction of the second moment, PyTorch after it; and it
// corrects nothing when T is 0, which is what ours does after very many steps.
void adam(Translator& t, const OpNode& node) {
  const OptimizerInputs inputs = optimizer_inputs(t, node, 4);
  if (node.real("norm_coefficient_post", 0.0) != 0.0) unsupported("decays the result");
  AdamAttributes attributes{.beta1 = node.real("alpha", 0.9),
                            .beta2 = node.real("beta", 0.999),
                            .epsilon = node.real("epsilon", 1e-6),
                            .weight_decay = node.real("norm_coefficient", 0.0)};
  constexpr std::int64_t kManySteps = 1 << 20;
  t.state().learning_rate = inputs.rate;
  t.state().optimizer_step = inputs.steps > 0.0 ? std::llround(inputs.steps) : kManySteps;
  if (inputs.steps > 0.0) {
    attributes.epsilon /= std::sqrt(1.0 - std::pow(attributes.beta2, inputs.steps));
  }
  const std::size_t count = inputs.parameters;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<ValueId> updated =
        t.node(OpKind::adam, attributes,
               {optimizer_value(t, node, 2 + i, Role::parameter),
                optimizer_value(t, node, 2 + count + i, Role::input),
                optimizer_value(t, node, 2 + 2 * count + i, Role::optimizer_state),
                optimizer_value(t, node, 2 + 3 * count + i, Role::optimizer_state)},
               Phase::optimizer);
    for (std::size_t output = 0; output < 3; ++output) {
      t.give(node.outputs[output * count + i], t.dims(node.inputs[2 + i]), updated[output]);
    }
  }
}

}  // namespace

TranslateNode find_training_op(const std::string& type) {
  static const std::map<std::string, TranslateNode> ops = {
      {"Adam", adam},         {"LogSoftmax", log_softmax},
      {"Momentum", momentum}, {"NegativeLogLikelihoodLoss", negative_log_likelihood},
      {"Softmax", softmax},   {"SoftmaxCrossEntropyLoss", softmax_cross_entropy},
  };
  const auto found = ops.find(type);
  return found != ops.end() ? found->second : nullptr;
}

}  // namespace ridgeline::onnx
