// Matrix products, sums, concatenation and changes of shape.

#include <cmath>
#include <utility>

#include "base/error.h"
#include "support/onnx_translator.h"

namespace ridgeline::onnx {
namespace {

std::vector<double> transposed(const std::vector<double>& numbers, std::int64_t rows,
                               std::int64_t columns) {
  std::vector<double> result(numbers.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      result[static_cast<std::size_t>(j * rows + i)] =
          numbers[static_cast<std::size_t>(i * columns + j)];
    }
  }
  return result;
}

std::vector<double> scaled(std::vector<double> numbers, double factor) {
  for (double& number : numbers) number *= factor;
  return numbers;
}

std::vector<double> part(const std::vector<double>& numbers, std::int64_t index,
                         std::int64_t size) {
  const auto begin = numbers.begin() + index * size;
  return {begin, begin + size};
}

// A bias that is one number, a row or a whole matrix.
ValueId add_bias(Translator& t, const Array& bias, double factor, ValueId product) {
  const Shape shape = t.graph().value(product).spec.shape;
  std::vector<double> numbers = scaled(bias.numbers(), factor);
  if (bias.dims.size() == 2 && bias.dims[0] == shape[0] && shape[0] > 1) {
    return t.node(OpKind::add, {}, {product, t.input(numbers, shape)})[0];
  }
  if (numbers.size() == 1) numbers.resize(static_cast<std::size_t>(shape[1]), numbers[0]);
  return t.node(OpKind::bias, {}, {product, t.input(numbers, {shape[1]})})[0];
}

void gemm(Translator& t, const OpNode& node) {
  const Array& a = t.floats(node.inputs[0]);
  const Array& b = t.floats(node.inputs[1]);
  const bool a_turned = node.integer("transA", 0) != 0, b_turned = node.integer("transB", 0) != 0;
  const double alpha = node.real("alpha", 1.0), beta = node.real("beta", 1.0);
  int exponent = 0;
  if (std::frexp(alpha, &exponent) != 0.5)
    unsupported("a factor alpha that cannot be folded exactly");
  const std::int64_t rows = a.dims[a_turned ? 1 : 0], depth = a.dims[a_turned ? 0 : 1];
  const std::int64_t columns = b.dims[b_turned ? 0 : 1];
  const std::vector<double> src = a_turned ? transposed(a.numbers(), depth, rows) : a.numbers();
  const std::vector<double> weights =
      b_turned ? b.numbers() : transposed(b.numbers(), depth, columns);
  ValueId dst =
      t.node(OpKind::linear, {},
             {t.input(scaled(src, alpha), {rows, depth}), t.input(weights, {columns, depth})})[0];
  if (node.has_input(2)) dst = add_bias(t, t.floats(node.inputs[2]), beta, dst);
  t.give(node.outputs[0], {rows, columns}, dst);
}

// Batched products are one linear op for each pair of matrices.
void matmul(Translator& t, const OpNode& node) {
  const Array& a = t.floats(node.inputs[0]);
  const Array& b = t.floats(node.inputs[1]);
  const std::size_t rank = a.dims.size();
  const std::int64_t depth = a.dims.back();
  if (b.dims.size() == 1) {
    const std::int64_t rows = product(a.dims, 0, rank - 1);
    const ValueId dst =
        t.node(OpKind::linear, {},
               {t.input(a.numbers(), {rows, depth}), t.input(b.numbers(), {1, depth})})[0];
    t.give(node.outputs[0], {a.dims.begin(), a.dims.end() - 1}, dst);
    return;
  }
  if (b.dims.size() != rank || product(a.dims, 0, rank - 2) != product(b.dims, 0, rank - 2)) {
    unsupported("matrices broadcast over batches");
  }
  const std::int64_t batches = product(a.dims, 0, rank - 2);
  const std::int64_t rows = a.dims[rank - 2], columns = b.dims[rank - 1];
  std::vector<ValueId> products;
  for (std::int64_t i = 0; i < batches; ++i) {
    const std::vector<double> src = part(a.numbers(), i, rows * depth);
    const std::vector<double> weights = part(b.numbers(), i, depth * columns);
    products.push_back(t.node(OpKind::linear, {},
                              {t.input(src, {rows, depth}),
                               t.input(transposed(weights, depth, columns), {columns, depth})})[0]);
  }
  Dims dims = a.dims;
  dims.back() = columns;
  t.derive(node.outputs[0], dims, products, [products](const ReadValue& read) {
    std::vector<double> all;
    for (const ValueId id : products) {
      const std::vector<double> one = read(id);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  });
}

void sum(Translator& t, const OpNode& node) {
  if (node.inputs.size() < 2) unsupported("a sum of one value is no op");
  const Dims& dims = t.dims(node.inputs[0]);
  const Shape shape = as_rows(dims);
  ValueId total = t.place(node.inputs[0], shape);
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    if (t.dims(node.inputs[i]) != dims) unsupported("an operand broadcast over others than rows");
    total = t.node(OpKind::add, {}, {total, t.place(node.inputs[i], shape)})[0];
  }
  t.give(node.outputs[0], dims, total);
}

// A vector along the last axis is a bias on rows of that length.
void add(Translator& t, const OpNode& node) {
  const Dims& dims = t.dims(node.inputs[0]);
  const Dims& other = t.dims(node.inputs[1]);
  if (other.size() != 1 || dims.size() < 2 || other[0] != dims.back()) return sum(t, node);
  const Shape rows = {product(dims, 0, dims.size() - 1), dims.back()};
  const ValueId bias = t.input(t.floats(node.inputs[1]).numbers(), {other[0]});
  t.give(node.outputs[0], dims, t.node(OpKind::bias, {}, {t.place(node.inputs[0], rows), bias})[0]);
}

// Ours joins along axis 1: the axes before the joined one become one, and those after it.
void concat(Translator& t, const OpNode& node) {
  Dims dims = t.dims(node.inputs[0]);
  const std::size_t axis = axis_of(node.integer("axis", 0), dims);
  const std::int64_t before = product(dims, 0, axis);
  const std::int64_t after = product(dims, axis + 1, dims.size());
  std::vector<ValueId> parts;
  std::int64_t total = 0;
  for (const std::string& name : node.inputs) {
    const std::int64_t joined = t.dims(name)[axis];
    parts.push_back(
        t.place(name, after == 1 ? Shape{before, joined} : Shape{before, joined, 1, after}));
    total += joined;
  }
  dims[axis] = total;
  t.give(node.outputs[0], dims, t.node(OpKind::concat, {}, parts)[0]);
}

void flatten(Translator& t, const OpNode& node) {
  const Dims& dims = t.dims(node.inputs[0]);
  const std::size_t axis = axis_of(node.integer("axis", 1), dims);
  Shape shape;
  for (const std::int64_t dim : dims) shape.append(dim);
  const Shape rows = {product(dims, 0, axis), product(dims, axis, dims.size())};
  const ValueId dst =
      t.node(OpKind::reshape, ReshapeAttributes{rows}, {t.place(node.inputs[0], shape)})[0];
  t.give(node.outputs[0], {rows[0], rows[1]}, dst);
}

void unsqueeze(Translator& t, const OpNode& node) {
  Dims dims = t.dims(node.inputs[0]);
  for (const std::int64_t axis : node.integers("axes", {})) dims.insert(dims.begin() + axis, 1);
  t.give_same(node.outputs[0], dims, node.inputs[0]);
}

void squeeze(Translator& t, const OpNode& node) {
  Dims dims = t.dims(node.inputs[0]);
  const Dims axes = node.integers("axes", {});
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) dims.erase(dims.begin() + *axis);
  t.give_same(node.outputs[0], dims, node.inputs[0]);
}

void constant(Translator& t, const OpNode& node) {
  const Attribute* value = node.find("value");
  if (value == nullptr) unsupported("a constant that is no tensor");
  t.give_constant(node.outputs[0], value->array.value());
}

void reshape(Translator& t, const OpNode& node) {
  Dims dims;
  for (const double dim : t.constant(node.inputs[1]).numbers()) dims.push_back(std::llround(dim));
  t.give_same(node.outputs[0], dims, node.inputs[0]);
}

void transpose(Translator& t, const OpNode& node) {
  const Array& array = t.constant(node.inputs[0]);
  if (array.dims.size() != 2 || node.integers("perm", {1, 0}) != Dims{1, 0}) {
    unsupported("no op for Transpose of more than two axes");
  }
  t.give_constant(node.outputs[0],
                  make_array(array.name, array.type, {array.dims[1], array.dims[0]},
                             transposed(array.numbers(), array.dims[0], array.dims[1])));
}

}  // namespace

TranslateNode find_matrix_op(const std::string& type) {
  static const std::map<std::string, TranslateNode> ops = {
      {"Add", add},
      {"Constant", constant},
      {"Reshape", reshape},
      {"Concat", concat},
      {"Flatten", flatten},
      {"Gemm", gemm},
      {"MatMul", matmul},
      {"Squeeze", squeeze},
      {"Sum", sum},
      {"Transpose", transpose},
      {"Unsqueeze", unsqueeze},
  };
  const auto found = ops.find(type);
  return found != ops.end() ? found->second : nullptr;
}

}  // namespace ridgeline::onnx
