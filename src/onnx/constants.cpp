#include "onnx/constants.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/error.h"

namespace ridgeline::onnx {
namespace {

using Inputs = std::span<const Array* const>;

const Array& input(const OpNode& node, Inputs inputs, std::size_t index) {
  if (index >= inputs.size() || inputs[index] == nullptr) {
    bad_input("{} lacks its input {}", node.type, index);
  }
  return *inputs[index];
}

double single(const OpNode& node, Inputs inputs, std::size_t index) {
  const std::vector<double> numbers = input(node, inputs, index).numbers();
  if (numbers.size() != 1)
    bad_input("{} with {} numbers instead of one", node.type, numbers.size());
  return numbers[0];
}

const Array* optional_input(Inputs inputs, std::size_t index) {
  return index < inputs.size() ? inputs[index] : nullptr;
}

// Steps of a row-major array, in elements.
Dims steps_of(const Dims& dims) {
  Dims steps(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) steps[i - 1] = steps[i] * dims[i];
  return steps;
}

// Calls `body` with each position of an array of these dims, in row-major order.
template <typename Body>
void each_position(const Dims& dims, Body&& body) {
  const std::int64_t count = elements_of(dims);
  Dims at(dims.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    body(at);
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      if (++at[axis] < dims[axis]) break;
      at[axis] = 0;
    }
  }
}

std::int64_t offset_of(const Dims& at, const Dims& steps) {
  return std::inner_product(at.begin(), at.end(), steps.begin(), std::int64_t{0});
}

// Copies the elements that `source` names, position by position of the result.
Array gathered(const Array& from, Dims dims,
               const std::function<std::int64_t(const Dims& at)>& source) {
  const std::size_t size = size_of(from.type);
  auto bytes =
      std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(elements_of(dims)) * size);
  std::size_t next = 0;
  each_position(dims, [&](const Dims& at) {
    const auto offset = static_cast<std::size_t>(source(at)) * size;
    std::memcpy(bytes->data() + next, from.bytes.data() + offset, size);
    next += size;
  });
  return {from.name, from.type, std::move(dims), *bytes, bytes};
}

Dims broadcast_dims(const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) {
      bad_input("{} and {} do not fit together", dims_text(a), dims_text(b));
    }
    dims[dims.size() - 1 - i] = of_a == 1 ? of_b : of_a;
  }
  if (!checked_elements(dims)) bad_input("{} elements are too many", dims_text(dims));
  return dims;
}

// Steps with which an array is read under larger dims: 0 where it is repeated.
Dims broadcast_steps(const Dims& dims, const Dims& to) {
  const Dims own = steps_of(dims);
  Dims steps(to.size(), 0);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1) steps[to.size() - dims.size() + i] = own[i];
  }
  return steps;
}

void check_size(const Dims& dims) {
  if (!checked_elements(dims)) bad_input("dimensions {} are too large", dims_text(dims));
}

using Binary = double (*)(double, double);

struct NamedBinary {
  std::string_view type;
  Binary compute;
  bool compares = false;  // gives a boolean
};
constexpr std::array<NamedBinary, 13> kBinaries = {{
    {"Add", [](double a, double b) { return a + b; }},
    {"Sub", [](double a, double b) { return a - b; }},
    {"Mul", [](double a, double b) { return a * b; }},
    {"Div", [](double a, double b) { return a / b; }},
    {"Pow", [](double a, double b) { return std::pow(a, b); }},
    {"Mod", [](double a, double b) { return b == 0.0 ? 0.0 : a - b * std::floor(a / b); }},
    {"Min", [](double a, double b) { return std::min(a, b); }},
    {"Max", [](double a, double b) { return std::max(a, b); }},
    {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }, true},
    {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }, true},
    {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }, true},
    {"And", [](double a, double b) { return a != 0.0 && b != 0.0 ? 1.0 : 0.0; }, true},
    {"Or", [](double a, double b) { return a != 0.0 || b != 0.0 ? 1.0 : 0.0; }, true},
}};

const NamedBinary* find_binary(std::string_view type) {
  for (const NamedBinary& each : kBinaries) {
    if (each.type == type) return &each;
  }
  return nullptr;
}

Array binary(const NamedBinary& op, const Array& a, const Array& b) {
  const Dims dims = broadcast_dims(a.dims, b.dims);
  const Dims steps_a = broadcast_steps(a.dims, dims), steps_b = broadcast_steps(b.dims, dims);
  const std::vector<double> from_a = a.numbers(), from_b = b.numbers();
  std::vector<double> made;
  made.reserve(static_cast<std::size_t>(elements_of(dims)));
  const bool whole = !is_real(a.type);
  each_position(dims, [&](const Dims& at) {
    const double x = from_a[static_cast<std::size_t>(offset_of(at, steps_a))];
    const double y = from_b[static_cast<std::size_t>(offset_of(at, steps_b))];
    if (whole && y == 0.0 && op.type == "Div") bad_input("Div of a whole number by 0");
    const double value = op.compute(x, y);
    made.push_back(whole ? std::trunc(value) : value);
  });
  return make_array({}, op.compares ? ElementType::boolean : a.type, dims, made);
}

std::vector<Array> fold_binary(const OpNode& node, Inputs inputs) {
  const NamedBinary& op = *find_binary(node.type);
  Array result = input(node, inputs, 0);
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    result = binary(op, result, input(node, inputs, i));
  }
  return {std::move(result)};
}

using Unary = double (*)(double);
struct NamedUnary {
  std::string_view type;
  Unary compute;
};
constexpr std::array<NamedUnary, 9> kUnaries = {{
    {"Neg", [](double x) { return -x; }},
    {"Abs", [](double x) { return std::abs(x); }},
    {"Floor", [](double x) { return std::floor(x); }},
    {"Ceil", [](double x) { return std::ceil(x); }},
    {"Round", [](double x) { return std::nearbyint(x); }},
    {"Sqrt", [](double x) { return std::sqrt(x); }},
    {"Exp", [](double x) { return std::exp(x); }},
    {"Reciprocal", [](double x) { return 1.0 / x; }},
    {"Not", [](double x) { return x == 0.0 ? 1.0 : 0.0; }},
}};

const NamedUnary* find_unary(std::string_view type) {
  for (const NamedUnary& each : kUnaries) {
    if (each.type == type) return &each;
  }
  return nullptr;
}

std::vector<Array> fold_unary(const OpNode& node, Inputs inputs) {
  const Array& from = input(node, inputs, 0);
  std::vector<double> numbers = from.numbers();
  for (double& number : numbers) number = find_unary(node.type)->compute(number);
  return {make_array({}, from.type, from.dims, numbers)};
}

std::vector<Array> fold_constant(const OpNode& node, Inputs) {
  if (const Attribute* value = node.find("value"); value != nullptr && value->array) {
    return {*value->array};
  }
  if (const Attribute* number = node.find("value_int")) {
    return {make_integers({}, {}, {{number->integer}})};
  }
  if (const Attribute* list = node.find("value_ints")) {
    return {make_integers({}, {std::ssize(list->integers)}, list->integers)};
  }
  if (const Attribute* number = node.find("value_float")) {
    return {make_array({}, ElementType::float32, {}, {{number->real}})};
  }
  if (const Attribute* list = node.find("value_floats")) {
    return {make_array({}, ElementType::float32, {std::ssize(list->reals)}, list->reals)};
  }
  bad_input("a Constant is neither a tensor nor a number");
}

std::vector<Array> fold_same(const OpNode& node, Inputs inputs) { return {input(node, inputs, 0)}; }

std::vector<Array> fold_cast(const OpNode& node, Inputs inputs) {
  const Array& from = input(node, inputs, 0);
  const ElementType to = node.type == "CastLike" ? input(node, inputs, 1).type
                                                 : static_cast<ElementType>(node.integer("to", 1));
  if (!is_known(to)) bad_input("Cast to element type {}", static_cast<int>(to));
  if (to == from.type) return {from};
  std::vector<double> numbers = from.numbers();
  if (to == ElementType::boolean) {
    for (double& number : numbers) number = number != 0.0 ? 1.0 : 0.0;
  }
  return {make_array({}, to, from.dims, numbers)};
}

std::vector<Array> fold_shape(const OpNode& node, Inputs inputs) {
  const Dims& dims = input(node, inputs, 0).dims;
  const auto rank = std::ssize(dims);
  const auto place = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t begin = place(node.integer("start", 0));
  const std::int64_t end = std::max(begin, place(node.integer("end", rank)));
  const Dims part(dims.begin() + begin, dims.begin() + end);
  return {make_integers({}, {std::ssize(part)}, part)};
}

std::vector<Array> fold_size(const OpNode& node, Inputs inputs) {
  return {make_integers({}, {}, {{input(node, inputs, 0).elements()}})};
}

std::vector<Array> fold_gather(const OpNode& node, Inputs inputs) {
  const Array& data = input(node, inputs, 0);
  const Array& places = input(node, inputs, 1);
  const std::size_t axis = axis_of(node.integer("axis", 0), data.dims.size());
  Dims indices = places.integers();
  for (std::int64_t& index : indices) {
    if (index < 0) index += data.dims[axis];
    if (index < 0 || index >= data.dims[axis]) bad_input("Gather beyond the end");
  }
  Dims dims(data.dims.begin(), data.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), places.dims.begin(), places.dims.end());
  dims.insert(dims.end(), data.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1,
              data.dims.end());
  check_size(dims);
  const Dims steps = steps_of(data.dims), index_steps = steps_of(places.dims);
  const std::size_t extra = places.dims.size();
  return {gathered(data, dims, [&](const Dims& at) {
    std::int64_t index = 0, offset = 0;
    for (std::size_t i = 0; i < extra; ++i) index += at[axis + i] * index_steps[i];
    for (std::size_t i = 0; i < axis; ++i) offset += at[i] * steps[i];
    offset += indices[static_cast<std::size_t>(index)] * steps[axis];
    for (std::size_t i = axis + 1; i < steps.size(); ++i) offset += at[i - 1 + extra] * steps[i];
    return offset;
  })};
}

std::vector<Array> fold_concat(const OpNode& node, Inputs inputs) {
  const Array& first = input(node, inputs, 0);
  const std::size_t axis = axis_of(node.integer("axis", 0), first.dims.size());
  Dims dims = first.dims;
  dims[axis] = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Array& part = input(node, inputs, i);
    Dims same = part.dims;
    if (same.size() != dims.size() || part.type != first.type) bad_input("Concat of unlike parts");
    same[axis] = 0;
    Dims others = dims;
    others[axis] = 0;
    if (same != others) bad_input("Concat of unlike parts");
    dims[axis] += part.dims[axis];
  }
  check_size(dims);
  auto bytes = std::make_shared<std::vector<std::byte>>();
  std::int64_t rows = 1;
  for (std::size_t i = 0; i < axis; ++i) rows *= dims[i];
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const Array* part : inputs) {
      const std::size_t size = part->bytes.size() / static_cast<std::size_t>(rows);
      const auto from = part->bytes.subspan(static_cast<std::size_t>(row) * size, size);
      bytes->insert(bytes->end(), from.begin(), from.end());
    }
  }
  return {{first.name, first.type, std::move(dims), *bytes, bytes}};
}

Array sliced(const Array& data, std::span<const SliceRange> ranges) {
  Dims dims = data.dims, begins(dims.size(), 0), strides(dims.size(), 1);
  for (const SliceRange& range : ranges) {
    dims[range.axis] = range.count;
    begins[range.axis] = range.begin;
    strides[range.axis] = range.step;
  }
  const Dims steps = steps_of(data.dims);
  return gathered(data, dims, [&](const Dims& at) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      offset += (begins[i] + at[i] * strides[i]) * steps[i];
    }
    return offset;
  });
}

std::vector<Array> fold_slice(const OpNode& node, Inputs inputs) {
  const Array& data = input(node, inputs, 0);
  return {sliced(data, slice_ranges(node, data.dims, inputs.subspan(1)))};
}

std::vector<Array> fold_split(const OpNode& node, Inputs inputs) {
  const Array& data = input(node, inputs, 0);
  const std::size_t axis = axis_of(node.integer("axis", 0), data.dims.size());
  std::vector<Array> parts;
  std::int64_t begin = 0;
  for (const std::int64_t size : split_sizes(node, data.dims[axis], optional_input(inputs, 1))) {
    const SliceRange range{axis, begin, size, 1};
    parts.push_back(sliced(data, {&range, 1}));
    begin += size;
  }
  return parts;
}

std::vector<Array> fold_squeeze(const OpNode& node, Inputs inputs) {
  const Array& data = input(node, inputs, 0);
  return {with_dims(data, squeezed(data.dims, axes_of(node, optional_input(inputs, 1))))};
}

std::vector<Array> fold_unsqueeze(const OpNode& node, Inputs inputs) {
  const Array& data = input(node, inputs, 0);
  const std::optional<Dims> axes = axes_of(node, optional_input(inputs, 1));
  if (!axes) bad_input("Unsqueeze without axes");
  return {with_dims(data, unsqueezed(data.dims, *axes))};
}

std::vector<Array> fold_reshape(const OpNode& node, Inputs inputs) {
  const Array& data = input(node, inputs, 0);
  const Dims target = input(node, inputs, 1).integers();
  return {with_dims(data, reshaped(data.dims, target, node.integer("allowzero", 0) != 0))};
}

std::vector<Array> fold_transpose(const OpNode& node, Inputs inputs) {
  const Array& data = input(node, inputs, 0);
  Dims order = node.integers("perm", {});
  if (order.empty()) {
    for (std::size_t i = data.dims.size(); i-- > 0;) order.push_back(static_cast<int>(i));
  }
  return {transposed(data, order)};
}

std::vector<Array> fold_expand(const OpNode& node, Inputs inputs) {
  const Array& data = input(node, inputs, 0);
  const Dims target = input(node, inputs, 1).integers();
  check_size(target);
  const Dims dims = broadcast_dims(data.dims, target);
  const Dims steps = broadcast_steps(data.dims, dims);
  return {gathered(data, dims, [&](const Dims& at) { return offset_of(at, steps); })};
}

std::vector<Array> fold_where(const OpNode& node, Inputs inputs) {
  const Array& condition = input(node, inputs, 0);
  const Array &yes = input(node, inputs, 1), &no = input(node, inputs, 2);
  const Dims dims = broadcast_dims(condition.dims, broadcast_dims(yes.dims, no.dims));
  const auto read = [&](const Array& array) {
    return [numbers = array.numbers(), steps = broadcast_steps(array.dims, dims)](const Dims& at) {
      return numbers[static_cast<std::size_t>(offset_of(at, steps))];
    };
  };
  const auto of_condition = read(condition), of_yes = read(yes), of_no = read(no);
  std::vector<double> made;
  each_position(dims, [&](const Dims& at) {
    made.push_back(of_condition(at) != 0.0 ? of_yes(at) : of_no(at));
  });
  return {make_array({}, yes.type, dims, made)};
}

std::vector<Array> fold_filled(const OpNode& node, Inputs inputs) {
  const Dims dims = input(node, inputs, 0).integers();
  check_size(dims);
  const Attribute* value = node.find("value");
  const bool given = value != nullptr && value->array && value->array->elements() == 1;
  const double number = given ? value->array->numbers()[0] : 0.0;
  const std::vector<double> numbers(static_cast<std::size_t>(elements_of(dims)), number);
  return {make_array({}, given ? value->array->type : ElementType::float32, dims, numbers)};
}

// How many numbers a Range has.
std::int64_t range_count(const OpNode& node, Inputs inputs) {
  const double begin = single(node, inputs, 0), end = single(node, inputs, 1);
  const double step = single(node, inputs, 2);
  const double count = std::ceil((end - begin) / step);
  if (!(std::abs(count) < 1e12)) bad_input("a Range without end");
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(count));
}

std::vector<Array> fold_range(const OpNode& node, Inputs inputs) {
  const double begin = single(node, inputs, 0), step = single(node, inputs, 2);
  std::vector<double> numbers(static_cast<std::size_t>(range_count(node, inputs)));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = begin + step * static_cast<double>(i);
  }
  return {make_array({}, inputs[0]->type, {std::ssize(numbers)}, numbers)};
}

// Over all elements: a product of dimensions.
std::vector<Array> fold_reduce(const OpNode& node, Inputs inputs) {
  const Array& data = input(node, inputs, 0);
  const std::optional<Dims> axes = axes_of(node, optional_input(inputs, 1));
  if (axes && axes->size() != data.dims.size()) bad_input("{} of some axes alone", node.type);
  double total = node.type == "ReduceProd" ? 1.0 : 0.0;
  for (const double number : data.numbers()) {
    total = node.type == "ReduceProd" ? total * number : total + number;
  }
  const bool keep = node.integer("keepdims", 1) != 0;
  return {make_array({}, data.type, keep ? Dims(data.dims.size(), 1) : Dims{}, {{total}})};
}

struct NamedFold {
  std::string_view type;
  std::vector<Array> (*compute)(const OpNode&, Inputs);
};
constexpr std::array<NamedFold, 20> kFolds = {{
    {"Constant", fold_constant},
    {"Identity", fold_same},
    {"Cast", fold_cast},
    {"CastLike", fold_cast},
    {"Shape", fold_shape},
    {"Size", fold_size},
    {"Gather", fold_gather},
    {"Concat", fold_concat},
    {"Slice", fold_slice},
    {"Split", fold_split},
    {"Squeeze", fold_squeeze},
    {"Unsqueeze", fold_unsqueeze},
    {"Reshape", fold_reshape},
    {"Transpose", fold_transpose},
    {"Expand", fold_expand},
    {"Where", fold_where},
    {"ConstantOfShape", fold_filled},
    {"Range", fold_range},
    {"ReduceProd", fold_reduce},
    {"ReduceSum", fold_reduce},
}};

const NamedFold* find_fold(std::string_view type) {
  for (const NamedFold& each : kFolds) {
    if (each.type == type) return &each;
  }
  return nullptr;
}

// Elements that a node will make, before it makes them.
std::int64_t size_of_result(const OpNode& node, Inputs inputs) {
  std::int64_t elements = 1;
  for (const Array* array : inputs) {
    if (array != nullptr) elements = std::max(elements, array->elements());
  }
  const auto product = [&](const Array& sizes) {
    const Dims dims = sizes.integers();
    check_size(dims);
    return elements_of(dims);
  };
  if (node.type == "ConstantOfShape") return product(input(node, inputs, 0));
  if (node.type == "Range") return range_count(node, inputs);
  if (node.type == "Expand") {
    const Dims target = input(node, inputs, 1).integers();
    check_size(target);
    return elements_of(broadcast_dims(input(node, inputs, 0).dims, target));
  }
  if (node.type == "Gather") {
    const Array& data = input(node, inputs, 0);
    const std::int64_t rows = std::max<std::int64_t>(1, data.dims.empty() ? 1 : data.dims[0]);
    std::int64_t made = 0;
    if (__builtin_mul_overflow(data.elements() / rows + 1, input(node, inputs, 1).elements(),
                               &made)) {
      bad_input("Gather makes too much");
    }
    return std::max(elements, made);
  }
  if (find_binary(node.type) != nullptr || node.type == "Where") {
    Dims dims;
    for (const Array* array : inputs) {
      if (array != nullptr) dims = broadcast_dims(dims, array->dims);
    }
    return elements_of(dims);
  }
  if (node.type == "Concat") {
    elements = 0;
    for (const Array* array : inputs) elements += array != nullptr ? array->elements() : 0;
  }
  return elements;
}

// Nothing is made: the same bytes under other dimensions.
bool is_free(const OpNode& node) {
  static constexpr std::array<std::string_view, 6> kFree = {"Constant", "Identity",  "Reshape",
                                                            "Squeeze",  "Unsqueeze", "Shape"};
  return std::find(kFree.begin(), kFree.end(), node.type) != kFree.end();
}

}  // namespace

bool can_fold(const OpNode& node) {
  return node.domain.empty() &&
         (find_fold(node.type) != nullptr || find_binary(node.type) != nullptr ||
          find_unary(node.type) != nullptr);
}

std::vector<Array> fold(const OpNode& node, Inputs inputs, FoldBudget& budget) {
  for (const Array* array : inputs) {
    if (array != nullptr && !is_known(array->type)) {
      bad_input("{} of element type {}", node.type, static_cast<int>(array->type));
    }
  }
  if (!is_free(node)) {
    budget.elements -= size_of_result(node, inputs);
    if (budget.elements < 0) bad_input("its constants are computed from too many elements");
  }
  if (const NamedFold* found = find_fold(node.type)) return found->compute(node, inputs);
  return find_binary(node.type) != nullptr ? fold_binary(node, inputs) : fold_unary(node, inputs);
}

Array with_dims(Array array, Dims dims) {
  if (checked_elements(dims) != array.elements()) {
    bad_input("{} elements cannot be seen as {}", array.elements(), dims_text(dims));
  }
  array.dims = std::move(dims);
  return array;
}

Array transposed(const Array& array, std::span<const std::int64_t> order) {
  std::vector<bool> used(array.dims.size(), false);
  if (order.size() != used.size()) bad_input("a permutation of {} axes", order.size());
  Dims dims, steps;
  const Dims own = steps_of(array.dims);
  for (const std::int64_t from : order) {
    const std::size_t axis = axis_of(from, used.size());
    if (used[axis]) bad_input("a permutation that names an axis twice");
    used[axis] = true;
    dims.push_back(array.dims[axis]);
    steps.push_back(own[axis]);
  }
  return gathered(array, dims, [&](const Dims& at) { return offset_of(at, steps); });
}

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis >= count) bad_input("axis {} of a value with {} axes", axis, rank);
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

Dims reshaped(std::span<const std::int64_t> dims, std::span<const std::int64_t> target,
              bool allow_zero) {
  Dims made(target.begin(), target.end());
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i] == 0 && !allow_zero) {
      if (i >= dims.size()) bad_input("Reshape copies an axis that is not there");
      made[i] = dims[i];
    }
    if (made[i] == -1) {
      if (open) bad_input("Reshape with two open axes");
      open = i;
      made[i] = 1;
    }
  }
  const std::optional<std::int64_t> known = checked_elements(made), all = checked_elements(dims);
  if (!known || !all) bad_input("Reshape to {}", dims_text(target));
  if (open && *known > 0 && *all % *known == 0) made[*open] = *all / *known;
  if (checked_elements(made) != all) {
    bad_input("Reshape of {} to {}: not as many elements", dims_text(dims), dims_text(target));
  }
  return made;
}

std::optional<Dims> axes_of(const OpNode& node, const Array* input_axes) {
  if (input_axes != nullptr) return input_axes->integers();
  if (const Attribute* attribute = node.find("axes")) return attribute->integers;
  return std::nullopt;
}

Dims squeezed(const Dims& dims, const std::optional<Dims>& axes) {
  std::vector<bool> gone(dims.size(), false);
  for (std::size_t i = 0; i < dims.size() && !axes; ++i) gone[i] = dims[i] == 1;
  for (const std::int64_t axis : axes.value_or(Dims{})) gone[axis_of(axis, dims.size())] = true;
  Dims made;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!gone[i]) made.push_back(dims[i]);
    if (gone[i] && dims[i] != 1) bad_input("Squeeze of an axis of {} elements", dims[i]);
  }
  return made;
}

Dims unsqueezed(const Dims& dims, const Dims& axes) {
  const std::size_t rank = dims.size() + axes.size();
  Dims made(rank, 0);
  for (const std::int64_t axis : axes) made[axis_of(axis, rank)] = 1;
  std::size_t next = 0;
  for (std::int64_t& dim : made) {
    if (dim == 1) continue;
    if (next == dims.size()) bad_input("Unsqueeze names an axis twice");
    dim = dims[next++];
  }
  return made;
}

std::vector<SliceRange> slice_ranges(const OpNode& node, const Dims& dims, Inputs constants) {
  const auto list = [&](std::size_t index) -> std::optional<Dims> {
    const Array* array = optional_input(constants, index);
    return array != nullptr ? std::optional(array->integers()) : std::nullopt;
  };
  const Dims begins = list(0).value_or(Dims{}), ends = list(1).value_or(Dims{});
  Dims usual(begins.size());
  std::iota(usual.begin(), usual.end(), 0);
  const Dims axes = list(2).value_or(usual), steps = list(3).value_or(Dims(begins.size(), 1));
  if (ends.size() != begins.size() || axes.size() != begins.size() ||
      steps.size() != begins.size()) {
    bad_input("{} with lists of different lengths", node.type);
  }
  std::vector<SliceRange> ranges;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::size_t axis = axis_of(axes[i], dims.size());
    const std::int64_t size = dims[axis], step = steps[i];
    if (step == 0) bad_input("{} with step 0", node.type);
    const auto place = [&](std::int64_t at, std::int64_t least, std::int64_t most) {
      return std::clamp(at < 0 ? at + size : at, least, most);
    };
    // Backward, a slice ends in front of the first element.
    const std::int64_t begin =
        step > 0 ? place(begins[i], 0, size) : place(begins[i], -1, size - 1);
    const std::int64_t end = step > 0 ? place(ends[i], 0, size) : place(ends[i], -1, size - 1);
    const std::int64_t length = step > 0 ? end - begin : begin - end;
    // Steps beyond the size take one element, and their negation could overflow.
    const std::int64_t stride =
        step > 0 ? std::min(step, size + 1) : std::min(-std::max(step, -(size + 1)), size + 1);
    const std::int64_t count = length <= 0 ? 0 : (length + stride - 1) / stride;
    ranges.push_back({axis, begin, count, step > 0 ? stride : -stride});
  }
  return ranges;
}

Dims split_sizes(const OpNode& node, std::int64_t size, const Array* parts) {
  Dims sizes = parts != nullptr ? parts->integers() : node.integers("split", {});
  const auto count = static_cast<std::int64_t>(node.outputs.size());
  if (sizes.empty()) {
    const std::int64_t each = (size + count - 1) / std::max<std::int64_t>(count, 1);
    for (std::int64_t left = size, i = 0; i < count; ++i) {
      sizes.push_back(std::min(each, left));
      left -= sizes.back();
    }
  }
  std::int64_t total = 0;
  for (const std::int64_t part : sizes) {
    if (part < 0 || part > size - total) bad_input("Split into parts that do not fit");
    total += part;
  }
  if (total != size || std::ssize(sizes) != count) {
    bad_input("Split of {} into {} parts of other sizes", size, count);
  }
  return sizes;
}

}  // namespace ridgeline::onnx
