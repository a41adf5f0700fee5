#include "support/onnx_translator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline::onnx {
namespace {

template <typename T>
std::vector<std::byte> bytes_as(const std::vector<double>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(T));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const T number = static_cast<T>(numbers[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &number, sizeof(T));
  }
  return bytes;
}

TranslateNode find_op(const std::string& type) {
  for (const auto find : {find_image_op, find_matrix_op, find_training_op}) {
    if (const TranslateNode found = find(type)) return found;
  }
  return nullptr;
}

}  // namespace

Translator::Translator(const Model& model, const std::vector<Array>& inputs)
    : opset_(model.opset()) {
  for (const Array& array : model.constants) give_constant(array.name, array);
  ensure(inputs.size() <= model.inputs.size(), "{} inputs for a model with {}", inputs.size(),
         model.inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) give_constant(model.inputs[i].name, inputs[i]);
}

const Translator::Known& Translator::known(const std::string& name) const {
  const auto found = values_.find(name);
  ensure(found != values_.end(), "the model has no value '{}'", name);
  return found->second;
}

const Dims& Translator::dims(const std::string& name) const { return known(name).dims; }

const Array& Translator::constant(const std::string& name) const {
  const Known& value = known(name);
  if (value.kind != Known::Kind::constant) unsupported("an operand is not known before the run");
  return value.array;
}

const Array& Translator::floats(const std::string& name) const {
  const Array& array = constant(name);
  if (array.type != ElementType::float32) {
    unsupported("computes in {}, our op in float32", name_of(array.type));
  }
  return array;
}

ValueId Translator::place(const std::string& name, const Shape& shape) {
  const Known& value = known(name);
  if (value.kind == Known::Kind::constant) return input(floats(name).numbers(), shape);
  if (value.kind == Known::Kind::derived) unsupported("an op between two others is not ours");
  if (graph().value(value.id).spec.shape == shape) return value.id;
  return node(OpKind::reshape, ReshapeAttributes{shape}, {value.id})[0];
}

ValueId Translator::input(const std::vector<double>& numbers, const Shape& shape, Role role,
                          DType dtype) {
  ensure(static_cast<std::int64_t>(numbers.size()) == shape.elements(), "{} numbers for shape {}",
         numbers.size(), shape.text());
  const std::string name = new_name("input");
  result_.inputs.push_back(
      {name, dtype == DType::i32 ? bytes_as<std::int32_t>(numbers) : bytes_as<float>(numbers)});
  return result_.graph.add_value(name, {shape, dtype}, role);
}

std::vector<ValueId> Translator::node(OpKind kind, Attributes attributes,
                                      std::vector<ValueId> inputs, Phase phase) {
  return result_.graph.add_node(kind, std::move(attributes), std::move(inputs), new_name("node"),
                                phase);
}

std::string Translator::new_name(const std::string& prefix) {
  return prefix + std::to_string(names_++);
}

void Translator::give_constant(const std::string& name, Array array) {
  Known value;
  value.dims = array.dims;
  value.array = std::move(array);
  values_[name] = std::move(value);
}

void Translator::give(const std::string& name, Dims dims, ValueId id) {
  ensure(elements_of(dims) == graph().value(id).spec.shape.elements(),
         "'{}' has {} elements in the model, but shape {} in the graph", name, elements_of(dims),
         graph().value(id).spec.shape.text());
  Known value;
  value.kind = Known::Kind::computed;
  value.dims = std::move(dims);
  value.id = id;
  value.read = [id](const ReadValue& read) { return read(id); };
  result_.graph.mark_output(id);
  values_[name] = std::move(value);
}

void Translator::derive(const std::string& name, Dims dims, std::vector<ValueId> from,
                        Derive read) {
  Known value;
  value.kind = Known::Kind::derived;
  value.dims = std::move(dims);
  value.read = std::move(read);
  for (const ValueId id : from) result_.graph.mark_output(id);
  values_[name] = std::move(value);
}

void Translator::give_same(const std::string& name, Dims dims, const std::string& source) {
  Known value = known(source);
  ensure(elements_of(dims) == elements_of(value.dims), "'{}' has not as many elements as '{}'",
         name, source);
  value.dims = dims;
  value.array.dims = std::move(dims);
  values_[name] = std::move(value);
}

Translation Translator::finish(const Model& model) {
  for (const ValueInfo& output : model.outputs) {
    const std::string& name = output.name;
    const Known& value = known(name);
    if (value.kind == Known::Kind::constant) unsupported("no op of ours takes part");
    result_.outputs.push_back({name, value.dims, value.read});
  }
  return std::move(result_);
}

Translation translate(const Model& model, const std::vector<Array>& inputs) {
  std::vector<std::string> missing;
  for (const OpNode& node : model.nodes) {
    const bool listed = std::find(missing.begin(), missing.end(), node.type) != missing.end();
    if (find_op(node.type) == nullptr && !listed) missing.push_back(node.type);
  }
  if (!missing.empty()) unsupported("no op for {}", joined(missing, ", "));

  Translator translator(model, inputs);
  for (const OpNode& node : model.nodes) find_op(node.type)(translator, node);
  return translator.finish(model);
}

std::size_t axis_of(std::int64_t axis, const Dims& dims) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(dims.size()) : axis);
}

std::int64_t product(const Dims& dims, std::size_t begin, std::size_t end) {
  std::int64_t result = 1;
  for (std::size_t i = begin; i < end; ++i) result *= dims[i];
  return result;
}

Shape as_rows(const Dims& dims) {
  if (dims.empty()) return {1, 1};
  return {dims[0], product(dims, 1, dims.size())};
}

}  // namespace ridgeline::onnx
