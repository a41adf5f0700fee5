// Element by element ops, and what exporters write with them: activations, layer norms, dropout of
// whole samples.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "onnx/importer.h"

namespace ridgeline::onnx {
namespace {

using Stage = NormPart::Stage;

// More ops one after another are no activation.
constexpr int kMostSteps = 32;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The single number that a constant is; kNone where there are more.
double number_in(const Array& array) { return array.number().value_or(kNone); }

// A value as a function of the tensor that it is made of; nothing where it is no such thing.
struct FunctionOf {
  Tensor of;
  Pointwise function;
  int steps = 0;
};
std::optional<FunctionOf> function_of(const Known& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return FunctionOf{*tensor, {}, 0};
  if (const auto* lazy = std::get_if<Lazy>(&value)) {
    return FunctionOf{lazy->of, lazy->function, lazy->steps};
  }
  return std::nullopt;
}

// Gives a function's value. Where an op reads it that cannot make more of it, it is emitted here,
// so that activations stand in the graph where they stand in the file.
void give_function(Importer& importer, const OpNode& node, Lazy lazy) {
  if (lazy.steps > kMostSteps) bad_input("more than {} ops on elements in a row", kMostSteps);
  const bool whole = lazy.function.activation().has_value();
  importer.give(node.outputs[0], std::move(lazy));
  const std::vector<const OpNode*> readers = importer.readers(node.outputs[0]);
  const bool read_as_it_is = importer.is_output(node.outputs[0]) ||
                             std::any_of(readers.begin(), readers.end(), [](const OpNode* reader) {
                               return !is_pointwise(*reader);
                             });
  if (whole && read_as_it_is) (void)importer.tensor(node.outputs[0]);
}

// One value and constants.
void unary(Importer& importer, const OpNode& node) {
  importer.settle_order(node, 0);
  const Known* value = importer.input(node, 0);
  if (value == nullptr) bad_input("its input is missing");
  std::optional<FunctionOf> src = function_of(*value);
  if (!src) src = FunctionOf{importer.tensor(node, 0), {}, 0};
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.has_input(i)) (void)importer.needed_constant(node, i);
  }
  const std::vector<const Array*> constants = importer.constants(node, 1);
  const std::optional<Pointwise> made = src->function.then(node, constants);
  const std::optional<Pointwise> last = Pointwise().then(node, constants);
  if (!made || !last) bad_input("of this kind is not supported");
  give_function(importer, node,
                {.of = src->of,
                 .function = *made,
                 .op = node.type,
                 .layer = importer.layer_of(node),
                 .parts = {node.inputs[0]},
                 .last = *last,
                 .steps = src->steps + 1});
}

// A constant that has a number for each channel of a value and nothing else.
bool is_per_channel(const Array& array, const View& view) {
  const std::optional<std::size_t> channels = view.channels();
  if (!channels || !is_real(array.type)) return false;
  const std::size_t rank = view.dims().size();
  if (array.dims.size() > rank) return false;
  for (std::size_t i = 0; i < array.dims.size(); ++i) {
    const std::size_t axis = rank - array.dims.size() + i;
    if (array.dims[i] != (axis == *channels ? view.dims()[axis] : 1)) return false;
  }
  return array.elements() == view.dims()[*channels];
}

std::vector<double> each(std::vector<double> numbers, double (*compute)(double)) {
  std::transform(numbers.begin(), numbers.end(), numbers.begin(), compute);
  return numbers;
}

// A scale or a bias of each channel is a parameter, unless it prepares the image itself.
void with_channels(Importer& importer, const OpNode& node, const Tensor& src, const Array& array,
                   bool constant_first) {
  const std::vector<double> numbers = array.numbers();
  const std::vector<double> ones(numbers.size(), 1.0), zeros(numbers.size(), 0.0);
  const std::string layer = importer.layer_of(node);
  const bool prepares = importer.is_image(src);
  if (node.type == "Mul" && !prepares) {
    const std::string name = importer.scale_layer(node, array);
    const ValueId dst = importer.builder().layer_scale(src.id, 1.0, name);
    importer.begin_with(name, array);
    importer.give(node.outputs[0], Tensor{dst, src.view});
  } else if (node.type == "Add" && !prepares) {
    const std::string name = importer.parameter_layer(node, 0);
    const ValueId dst = importer.builder().bias(src.id, name);
    importer.begin_with(name + ".bias", array);
    importer.give(node.outputs[0], Tensor{dst, src.view});
  } else if (node.type == "Mul") {
    importer.give(node.outputs[0], importer.scaled_and_shifted(src, numbers, zeros, layer));
  } else if (node.type == "Add") {
    importer.give(node.outputs[0], importer.scaled_and_shifted(src, ones, numbers, layer));
  } else if (node.type == "Sub" && !constant_first) {
    const auto negated = each(numbers, [](double x) { return -x; });
    importer.give(node.outputs[0], importer.scaled_and_shifted(src, ones, negated, layer));
  } else if (node.type == "Div" && !constant_first) {
    const auto inverse = each(numbers, [](double x) { return 1.0 / x; });
    importer.give(node.outputs[0], importer.scaled_and_shifted(src, inverse, zeros, layer));
  } else {
    bad_input("with a constant for each channel is not supported");
  }
}

// The step that an op takes in a decomposed normalisation; nothing where it is none.
std::optional<NormPart> next_part(const NormPart& part, const OpNode& node, const Known& other) {
  NormPart made = part;
  const auto* tensor = std::get_if<Tensor>(&other);
  const auto* norm = std::get_if<NormPart>(&other);
  const auto* array = std::get_if<Array>(&other);
  const bool same_source = (tensor != nullptr && tensor->id == part.of.id) ||
                           (norm != nullptr && norm->of.id == part.of.id);
  const double number = array != nullptr ? number_in(*array) : kNone;
  if (part.stage == Stage::mean && node.type == "Sub" && tensor != nullptr && same_source) {
    made.stage = Stage::centred;
  } else if (part.stage == Stage::centred && node.type == "Pow" && number == 2.0) {
    made.stage = Stage::squared;
  } else if (part.stage == Stage::centred && node.type == "Mul" && norm != nullptr &&
             norm->stage == Stage::centred && same_source) {
    made.stage = Stage::squared;
  } else if (part.stage == Stage::variance && node.type == "Add" && !std::isnan(number)) {
    made.epsilon = number;
  } else if (part.stage == Stage::centred && norm != nullptr && same_source &&
             ((node.type == "Div" && norm->stage == Stage::deviation) ||
              (node.type == "Mul" && norm->stage == Stage::inverse))) {
    made.stage = Stage::normalised;
    made.epsilon = norm->epsilon;
  } else if (part.stage == Stage::deviation && node.type == "Div" && number == 1.0) {
    made.stage = Stage::inverse;
  } else {
    return std::nullopt;
  }
  return made;
}

// Scale and shift complete a normalisation; the op stands where the shift does.
void finish_norm(Importer& importer, const OpNode& node, const NormPart& part, const Array& array) {
  if (part.stage == Stage::normalised && node.type == "Mul") {
    NormPart made = part;
    made.stage = Stage::scaled;
    made.scale = array;
    importer.give(node.outputs[0], std::move(made));
    return;
  }
  if (part.stage != Stage::scaled || node.type != "Add") {
    bad_input("in a normalisation is not recognised");
  }
  const std::string layer = importer.norm_layer(*part.scale, part.layer);
  NetworkBuilder& builder = importer.builder();
  const ValueId dst = part.groups == 0
                          ? builder.layer_norm(part.of.id, layer, part.epsilon)
                          : builder.group_norm(part.of.id, part.groups, layer, part.epsilon);
  importer.begin_with(layer + ".weight", *part.scale);
  importer.begin_with(layer + ".bias", array);
  importer.give(node.outputs[0], Tensor{dst, part.of.view});
}

bool step_of_norm(Importer& importer, const OpNode& node, const Known& a, const Known& b) {
  const auto* first = std::get_if<NormPart>(&a);
  const auto* second = std::get_if<NormPart>(&b);
  if (first == nullptr && second == nullptr) return false;
  for (const auto& [part, other] : {std::pair(first, &b), std::pair(second, &a)}) {
    if (part == nullptr) continue;
    if (const auto made = next_part(*part, node, *other)) {
      importer.give(node.outputs[0], *made);
      return true;
    }
    const auto* array = std::get_if<Array>(other);
    if (array != nullptr && is_per_channel(*array, part->of.view)) {
      finish_norm(importer, node, *part, *array);
      return true;
    }
  }
  bad_input("in a normalisation is not recognised");
}

// Random numbers that are below a bound, divided by it, times a value: samples are dropped.
bool step_of_mask(Importer& importer, const OpNode& node, const Known& a, const Known& b) {
  const auto* first = std::get_if<Mask>(&a);
  const auto* second = std::get_if<Mask>(&b);
  if (first == nullptr && second == nullptr) return false;
  Mask mask = first != nullptr ? *first : *second;
  const Known& other = first != nullptr ? b : a;
  const auto* array = std::get_if<Array>(&other);
  const double number = array != nullptr ? number_in(*array) : kNone;
  if (!std::isnan(number) && first != nullptr && node.type == "Less" && !mask.survival) {
    mask.survival = number;
  } else if (first != nullptr && node.type == "Div" && mask.survival && *mask.survival == number) {
    mask.scaled = true;
  } else if (node.type == "Mul" && array == nullptr && mask.survival) {
    const std::string& name = node.inputs[first != nullptr ? 1 : 0];
    const Tensor src = importer.tensor(name);
    const double probability = 1.0 - *mask.survival;
    const Dims& dims = src.view.dims();
    const bool rows = mask.dims.size() == dims.size() && !dims.empty() && mask.dims[0] == dims[0] &&
                      std::all_of(mask.dims.begin() + 1, mask.dims.end(),
                                  [](std::int64_t dim) { return dim == 1; });
    if (!mask.scaled || !(probability >= 0.0 && probability < 1.0)) {
      bad_input("with random numbers is not recognised");
    }
    NetworkBuilder& builder = importer.builder();
    const std::string layer = importer.layer_of(node);
    if (!rows && mask.dims != dims) bad_input("with random numbers is not recognised");
    if (probability == 0.0 || !importer.plan().drops) {
      importer.give(node.outputs[0], src);
      return true;
    }
    const ValueId dst = rows ? builder.stochastic_depth(src.id, probability, layer)
                             : builder.dropout(src.id, probability, layer);
    importer.give(node.outputs[0], Tensor{dst, src.view});
    return true;
  } else {
    bad_input("with random numbers is not recognised");
  }
  importer.give(node.outputs[0], mask);
  return true;
}

// Two values of the graph, as ops of ours have them: of one shape, or a factor for each channel.
void join(Importer& importer, const OpNode& node) {
  Tensor a = importer.tensor(node, 0), b = importer.tensor(node, 1);
  const std::string layer = importer.layer_of(node);
  NetworkBuilder& builder = importer.builder();
  const auto is_last = [&](const Tensor& value) {
    const Shape& shape = builder.shape(value.id);
    return shape.rank() == 4 && value.view == View::channels_last(shape);
  };
  const bool same = a.view == b.view && builder.shape(a.id) == builder.shape(b.id);
  if (!same && !(is_last(a) && is_last(b))) {
    a = importer.settled(node, 0);
    b = importer.settled(node, 1);
  }
  // Our op wants the larger factor first; its rule says what else it wants.
  const bool larger = builder.shape(a.id).elements() >= builder.shape(b.id).elements();
  const View view = larger ? a.view : b.view;
  if (node.type == "Add") {
    importer.give(node.outputs[0], Tensor{builder.add(a.id, b.id, layer), view});
  } else if (node.type == "Mul") {
    importer.give(node.outputs[0], Tensor{builder.multiply(a.id, b.id, layer), view});
  } else {
    bad_input("of two values is not supported");
  }
}

// One value and a constant.
void with_constant(Importer& importer, const OpNode& node, std::size_t index, const Array& array) {
  const bool constant_first = index == 1;
  const std::optional<double> number = array.number();
  if (number) {
    const Known& value = *importer.input(node, index);
    std::optional<FunctionOf> src = function_of(value);
    if (!src) src = FunctionOf{importer.tensor(node, index), {}, 0};
    const Pointwise constant = Pointwise::constant(*number);
    const auto joined = [&](const Pointwise& function) {
      return constant_first ? Pointwise::joined(node.type, constant, function)
                            : Pointwise::joined(node.type, function, constant);
    };
    const std::optional<Pointwise> made = joined(src->function), last = joined({});
    if (!made || !last) bad_input("with a constant is not supported");
    give_function(importer, node,
                  {.of = src->of,
                   .function = *made,
                   .op = node.type,
                   .layer = importer.layer_of(node),
                   .parts = {node.inputs[index]},
                   .last = *last,
                   .steps = src->steps + 1});
    return;
  }
  const Tensor src = importer.tensor(node, index);
  if (!is_per_channel(array, src.view)) {
    bad_input("with a constant of {} is not supported", dims_text(array.dims));
  }
  with_channels(importer, node, src, array, constant_first);
}

void binary(Importer& importer, const OpNode& node) {
  if (node.inputs.size() != 2 || !node.has_input(0) || !node.has_input(1)) {
    bad_input("needs two inputs");
  }
  // A normalisation knows its tensor as it was before any reshape.
  if (step_of_norm(importer, node, Known(importer.known(node.inputs[0])),
                   Known(importer.known(node.inputs[1])))) {
    return;
  }
  for (const std::size_t index : {0U, 1U}) importer.settle_order(node, index);
  // Copies: what is emitted replaces them.
  const Known a = importer.known(node.inputs[0]), b = importer.known(node.inputs[1]);
  if (step_of_mask(importer, node, a, b)) return;
  if (const auto* array = std::get_if<Array>(&b)) return with_constant(importer, node, 0, *array);
  if (const auto* array = std::get_if<Array>(&a)) return with_constant(importer, node, 1, *array);
  const std::optional<FunctionOf> of_a = function_of(a), of_b = function_of(b);
  if (of_a && of_b && of_a->of.id == of_b->of.id && of_a->of.view == of_b->of.view) {
    if (const auto made = Pointwise::joined(node.type, of_a->function, of_b->function)) {
      give_function(importer, node,
                    {.of = of_a->of,
                     .function = *made,
                     .op = node.type,
                     .layer = importer.layer_of(node),
                     .parts = {node.inputs[0], node.inputs[1]},
                     .last = {},
                     .steps = of_a->steps + of_b->steps + 1});
      return;
    }
  }
  join(importer, node);
}

// Several summands.
void sum(Importer& importer, const OpNode& node) {
  if (node.inputs.size() == 1) {
    importer.give(node.outputs[0], importer.known(node.inputs[0]));
    return;
  }
  NetworkBuilder& builder = importer.builder();
  const std::string layer = importer.layer_of(node);
  ValueId total = importer.settled(node, 0).id;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    total = builder.add(total, importer.settled(node, i).id, layer);
  }
  importer.give(node, total);
}

// Which of the view's axes a reduction takes.
std::vector<bool> reduced_axes(const Importer& importer, const OpNode& node, std::size_t rank) {
  const Array* given = node.has_input(1) ? &importer.needed_constant(node, 1) : nullptr;
  const std::optional<Dims> axes = axes_of(node, given);
  std::vector<bool> reduced(rank, !axes || axes->empty());
  for (const std::int64_t axis : axes.value_or(Dims{})) reduced[axis_of(axis, rank)] = true;
  return reduced;
}

Dims left_by(const Dims& dims, const std::vector<bool>& reduced, bool keep) {
  Dims left;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!reduced[i]) left.push_back(dims[i]);
    if (reduced[i] && keep) left.push_back(1);
  }
  return left;
}

// Whether the axes are all rows and columns of an image, and those alone.
bool are_pixels(const Importer& importer, const Tensor& src, const std::vector<bool>& reduced) {
  const Shape& shape = importer.shape(src.id);
  if (shape.rank() != 4) return false;
  std::int64_t pixels = 1;
  const Dims& dims = src.view.dims();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!reduced[i]) continue;
    pixels *= dims[i];
    if (src.view.is_own_axis(i, 0) && shape[0] > 1) return false;
    if (src.view.is_own_axis(i, 1) && shape[1] > 1) return false;
  }
  const bool known = src.view == View(shape) || src.view == View::channels_last(shape) ||
                     (src.view.is_in_order() && dims.size() == 3 && dims[1] == shape[1]);
  return known && pixels == shape[2] * shape[3];
}

void reduce_mean(Importer& importer, const OpNode& node) {
  if (!node.has_input(0)) bad_input("its input is missing");
  const Known value = importer.known(node.inputs[0]);
  const bool keep = node.integer("keepdims", 1) != 0;
  if (const auto* part = std::get_if<NormPart>(&value)) {
    const auto reduced = reduced_axes(importer, node, part->of.view.dims().size());
    const std::optional<std::size_t> channels = part->of.view.channels();
    const bool over_channels =
        channels && reduced[*channels] && std::count(reduced.begin(), reduced.end(), true) == 1;
    if (part->stage != Stage::squared || !over_channels || !keep) {
      bad_input("in a normalisation is not recognised");
    }
    NormPart made = *part;
    made.stage = Stage::variance;
    importer.give(node.outputs[0], std::move(made));
    return;
  }
  const Tensor src = importer.tensor(node, 0);
  const Dims& dims = src.view.dims();
  const auto reduced = reduced_axes(importer, node, dims.size());
  if (are_pixels(importer, src, reduced)) {
    const ValueId dst = importer.builder().global_average_pool(src.id, importer.layer_of(node));
    const std::optional<View> view =
        View(importer.shape(dst)).reshaped(left_by(dims, reduced, keep));
    if (!view) bad_input("leaves axes that are not supported");
    importer.give(node.outputs[0], Tensor{dst, *view});
    return;
  }
  const std::optional<std::size_t> channels = src.view.channels();
  const bool over_channels =
      channels && reduced[*channels] && std::count(reduced.begin(), reduced.end(), true) == 1;
  if (!over_channels || !keep) bad_input("over these axes is not supported");
  importer.give(node.outputs[0], NormPart{.stage = Stage::mean,
                                          .of = src,
                                          .groups = 0,
                                          .epsilon = 0.0,
                                          .scale = {},
                                          .layer = importer.layer_of(node)});
}

// The largest pixel of each channel, as PyTorch writes an adaptive maximum of one pixel.
void reduce_max(Importer& importer, const OpNode& node) {
  const Tensor src = importer.tensor(node, 0);
  const auto reduced = reduced_axes(importer, node, src.view.dims().size());
  if (!are_pixels(importer, src, reduced) || node.integer("keepdims", 1) == 0) {
    bad_input("over other axes than rows and columns, or without keeping them, is not supported");
  }
  find_layer("GlobalMaxPool")(importer, node);
}

void square_root(Importer& importer, const OpNode& node) {
  const auto* part = node.has_input(0) ? std::get_if<NormPart>(importer.input(node, 0)) : nullptr;
  if (part == nullptr) return unary(importer, node);
  NormPart made = *part;
  if (part->stage != Stage::variance) bad_input("in a normalisation is not recognised");
  made.stage = Stage::deviation;
  importer.give(node.outputs[0], std::move(made));
}

void reciprocal(Importer& importer, const OpNode& node) {
  const auto* part = node.has_input(0) ? std::get_if<NormPart>(importer.input(node, 0)) : nullptr;
  if (part == nullptr) return unary(importer, node);
  NormPart made = *part;
  if (part->stage != Stage::deviation) bad_input("in a normalisation is not recognised");
  made.stage = Stage::inverse;
  importer.give(node.outputs[0], std::move(made));
}

// The loss has a softmax of its own.
void softmax(Importer& importer, const OpNode& node) {
  if (!importer.is_output(node.outputs[0])) {
    bad_input("anywhere but at the end is not supported");
  }
  importer.give(node.outputs[0], importer.tensor(node, 0));
}

// Numbers between 0 and 1.
void random(Importer& importer, const OpNode& node) {
  if (node.real("low", 0.0) != 0.0 || node.real("high", 1.0) != 1.0) {
    bad_input("of numbers that do not lie between 0 and 1");
  }
  if (node.type == "RandomUniform") {
    importer.give(node.outputs[0], Mask{.dims = node.integers("shape", {})});
    return;
  }
  const Known* like = importer.input(node, 0);
  if (like == nullptr) bad_input("its input is missing");
  const auto* array = std::get_if<Array>(like);
  importer.give(
      node.outputs[0],
      Mask{.dims = array != nullptr ? array->dims : importer.tensor(node, 0).view.dims()});
}

// A constant probability of 1 for each element.
void bernoulli(Importer& importer, const OpNode& node) {
  const Array& array = importer.needed_constant(node, 0);
  const std::vector<double> numbers = array.numbers();
  const bool same = !numbers.empty() && std::all_of(numbers.begin(), numbers.end(),
                                                    [&](double x) { return x == numbers[0]; });
  if (!same) bad_input("with different probabilities is not supported");
  importer.give(node.outputs[0], Mask{.dims = array.dims, .survival = numbers[0]});
}

struct NamedOp {
  std::string_view type;
  Translate translate;
};
constexpr std::array<NamedOp, 32> kOps = {{
    {"Abs", unary},
    {"Add", binary},
    {"Bernoulli", bernoulli},
    {"Clip", unary},
    {"Div", binary},
    {"Elu", unary},
    {"Erf", unary},
    {"Exp", unary},
    {"Gelu", unary},
    {"HardSigmoid", unary},
    {"HardSwish", unary},
    {"LeakyRelu", unary},
    {"Less", binary},
    {"Log", unary},
    {"LogSoftmax", softmax},
    {"Max", binary},
    {"Min", binary},
    {"Mul", binary},
    {"Neg", unary},
    {"Pow", binary},
    {"RandomUniform", random},
    {"RandomUniformLike", random},
    {"Reciprocal", reciprocal},
    {"ReduceMax", reduce_max},
    {"ReduceMean", reduce_mean},
    {"Relu", unary},
    {"Sigmoid", unary},
    {"Softmax", softmax},
    {"Sqrt", square_root},
    {"Sub", binary},
    {"Sum", sum},
    {"Tanh", unary},
}};

}  // namespace

Translate find_element_op(std::string_view type) {
  for (const NamedOp& op : kOps) {
    if (op.type == type) return op.translate;
  }
  return nullptr;
}

std::vector<std::string_view> element_ops() {
  std::vector<std::string_view> names;
  for (const NamedOp& op : kOps) names.push_back(op.type);
  return names;
}

}  // namespace ridgeline::onnx
