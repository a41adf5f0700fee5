#include "onnx/importer.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace ridgeline::onnx {
namespace {

// The dimensions that the file would see; nothing where they are not known.
std::optional<Dims> dims_of(const Known& value) {
  if (const auto* array = std::get_if<Array>(&value)) return array->dims;
  if (const auto* tensor = std::get_if<Tensor>(&value)) return tensor->view.dims();
  if (const auto* lazy = std::get_if<Lazy>(&value)) return lazy->of.view.dims();
  if (const auto* part = std::get_if<NormPart>(&value)) return part->of.view.dims();
  if (const auto* mask = std::get_if<Mask>(&value)) return mask->dims;
  if (const auto* padded = std::get_if<Padded>(&value)) {
    Dims dims = padded->of.view.dims();
    const PadAttributes& amounts = padded->amounts;
    dims[1] += amounts.channels_before + amounts.channels_behind;
    dims[2] += amounts.top + amounts.bottom;
    dims[3] += amounts.left + amounts.right;
    return dims;
  }
  return std::nullopt;
}

constexpr std::size_t kMostLetters = 200;  // of a name in a message
constexpr int kDeepest = 64;               // constants are computed ahead
constexpr std::int64_t kElementsOfSample = 1 << 14;
constexpr int kMostUses = 16;
constexpr std::int64_t kMostElements = std::int64_t{1} << 36;  // of a value, for one sample

Translate find_translation(std::string_view type) {
  for (const auto find : {find_layer, find_shape_op, find_element_op}) {
    if (const Translate found = find(type)) return found;
  }
  return nullptr;
}

bool is_quantised(std::string_view type) {
  return type.find("uantize") != std::string_view::npos || type.starts_with("QLinear") ||
         type.ends_with("Integer");
}

// More than a machine could hold, and few enough to be counted in what follows.
void check_value_size(const Dims& dims) {
  const std::optional<std::int64_t> elements = checked_elements(dims);
  const std::int64_t samples = dims.empty() ? 1 : std::max<std::int64_t>(dims[0], 1);
  if (!elements || *elements / samples > kMostElements || *elements < 1) {
    bad_input("makes a value of {}", dims_text(dims));
  }
}

[[noreturn]] void refuse(const OpNode& node) {
  if (node.type == "If" || node.type == "Loop" || node.type == "Scan") {
    bad_input("loops and branches are not supported; export the network with fixed shapes");
  }
  if (is_quantised(node.type)) {
    bad_input("quantised networks are not supported; export the network in float32");
  }
  if (!node.domain.empty()) bad_input("ops of domain {} are not supported", node.domain);
  bad_input("{}", kUnknownOp);
}

}  // namespace

Links::Links(const Model& model) {
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    for (const std::string& name : model.nodes[i].inputs) {
      if (!name.empty()) readers[name].push_back(i);
    }
    for (const std::string& name : model.nodes[i].outputs) {
      if (!name.empty()) writer.emplace(name, i);
    }
  }
  for (const Array& array : model.constants) constants.insert(array.name);
  for (const ValueInfo& output : model.outputs) outputs.insert(output.name);
}

Importer::Importer(const ImportPlan& plan, NetworkBuilder& builder)
    : plan_(plan), builder_(builder), skipped_(plan.model->nodes.size(), false) {
  for (const Array& array : plan.model->constants) {
    if (!values_.emplace(array.name, array).second) {
      bad_input("two tensors are called '{}'", array.name);
    }
  }
  // Weights may be transposed and cast, each a few times.
  for (const Array& array : plan.model->constants) {
    budget_.elements += 4 * static_cast<std::int64_t>(array.bytes.size());
  }
  name_layers();
}

// A name may come a few times: a module is used again. More often it gets a number.
void Importer::name_layers() {
  std::map<std::string, int> times;
  for (const OpNode& node : plan_.model->nodes) {
    std::string layer = layer_of_node(node);
    if (const int time = ++times[layer]; time > kMostUses) layer += fmt::format("_{}", time);
    layer_of_.push_back(std::move(layer));
  }
}

const std::string& Importer::layer_of(const OpNode& node) const {
  return layer_of_[number_of(node)];
}

void Importer::run(ValueId image, const View& view, std::vector<Refusal>* refusals) {
  images_ = {image};
  // Exporters reckon with indices of all samples.
  budget_.elements += kElementsOfSample * builder_.shape(image)[0];
  give(plan_.image, Tensor{image, view});
  const std::vector<OpNode>& nodes = plan_.model->nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (plan_.wanted[i] && !skipped_[i]) walk(nodes[i], refusals);
  }
}

void Importer::walk(const OpNode& node, std::vector<Refusal>* refusals) {
  const std::string& domain = node.domain;
  const auto opset = plan_.model->opsets.find(domain);
  const std::int64_t version = opset == plan_.model->opsets.end() ? 0 : opset->second;
  try {
    if (!reads_unknown(node)) {
      translate(node);
      return;
    }
    // What it reads is not known; whether the op itself is, can be said.
    if (find_translation(node.type) == nullptr && !can_fold(node)) refuse(node);
  } catch (const Error& error) {
    const std::string name = printable(node.name, kMostLetters);
    const std::string op = printable(node.type, kMostLetters);
    if (refusals == nullptr || error.kind() != ErrorKind::bad_input) {
      throw Error(error.kind(),
                  fmt::format("node '{}' ({}, opset {}): {}", name, op, version, error.what()));
    }
    refusals->push_back({name, op, version, printable(error.what())});
  }
  for (const std::string& name : node.outputs) {
    if (!name.empty()) values_.insert_or_assign(name, Unknown{});
  }
}

bool Importer::reads_unknown(const OpNode& node) const {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& name) {
    const auto found = values_.find(name);
    return found != values_.end() && std::holds_alternative<Unknown>(found->second);
  });
}

void Importer::translate(const OpNode& node) {
  if (node.outputs.empty()) bad_input("it gives nothing");
  const bool nested = std::any_of(node.attributes.begin(), node.attributes.end(),
                                  [](const Attribute& attribute) { return attribute.is_graph; });
  if (nested || !node.domain.empty()) refuse(node);
  if (fold_constants(node)) return;
  const Translate found = find_translation(node.type);
  if (found == nullptr) refuse(node);
  found(*this, node);
}

bool Importer::fold_constants(const OpNode& node) {
  if (!can_fold(node)) return false;
  const bool asks_dims = node.type == "Shape" || node.type == "Size";
  std::vector<Array> shapes;  // stand-ins that have dimensions alone
  shapes.reserve(node.inputs.size());
  std::vector<const Array*> inputs;
  for (const std::string& name : node.inputs) {
    if (name.empty()) {
      inputs.push_back(nullptr);
      continue;
    }
    const Known& value = known(name);
    if (const auto* array = std::get_if<Array>(&value)) {
      inputs.push_back(array);
    } else if (const auto dims = dims_of(value); asks_dims && dims && checked_elements(*dims)) {
      shapes.push_back({name, ElementType::float32, *dims, {}, nullptr});
      inputs.push_back(&shapes.back());
    } else {
      return false;
    }
  }
  std::vector<Array> made = fold(node, inputs, budget_);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= made.size()) bad_input("it has no output {}", i);
    // Exporters give tensors of equal contents names by Identity.
    if (node.type == "Identity" || made[i].name.empty()) made[i].name = node.outputs[i];
    give(node.outputs[i], std::move(made[i]));
  }
  return true;
}

const Known& Importer::known(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    bad_input(
        "it reads '{}', which no node before it writes: the file is incomplete or has a cycle",
        name);
  }
  return found->second;
}

const Known* Importer::input(const OpNode& node, std::size_t index) const {
  return node.has_input(index) ? &known(node.inputs[index]) : nullptr;
}

const Array* Importer::constant(const OpNode& node, std::size_t index) const {
  const Known* value = input(node, index);
  return value == nullptr ? nullptr : std::get_if<Array>(value);
}

const Array* Importer::find_constant(const std::string& name) { return find_constant(name, 0); }

const Array* Importer::find_constant(const std::string& name, int depth) {
  if (const auto found = values_.find(name); found != values_.end()) {
    return std::get_if<Array>(&found->second);
  }
  const auto writer = plan_.links->writer.find(name);
  if (writer == plan_.links->writer.end() || depth == kDeepest) return nullptr;
  const OpNode& node = plan_.model->nodes[writer->second];
  if (!plan_.wanted[writer->second] || !can_fold(node)) return nullptr;
  for (const std::string& input_name : node.inputs) {
    const bool ready = input_name.empty() || values_.contains(input_name);
    if (!ready && find_constant(input_name, depth + 1) == nullptr) return nullptr;
  }
  if (!fold_constants(node)) return nullptr;
  skip(node);
  return find_constant(name, kDeepest);
}

std::vector<const Array*> Importer::constants(const OpNode& node, std::size_t first) const {
  std::vector<const Array*> arrays;
  for (std::size_t i = first; i < node.inputs.size(); ++i) arrays.push_back(constant(node, i));
  return arrays;
}

const Array& Importer::needed_constant(const OpNode& node, std::size_t index) const {
  const Array* array = constant(node, index);
  if (array == nullptr) bad_input("its input {} must be a constant", index);
  if (!is_known(array->type)) bad_input("its input {} is of a type that is not known", index);
  return *array;
}

Tensor Importer::emit(const Lazy& lazy) {
  if (lazy.function.is_identity()) return lazy.of;
  if (const auto activation = lazy.function.activation()) {
    return {builder_.activation(lazy.of.id, *activation, lazy.layer), lazy.of.view};
  }
  if (lazy.parts.size() == 2) {
    const Tensor a = tensor(lazy.parts[0]), b = tensor(lazy.parts[1]);
    if (lazy.op == "Add") return {builder_.add(a.id, b.id, lazy.layer), a.view};
    if (lazy.op == "Mul") return {builder_.multiply(a.id, b.id, lazy.layer), a.view};
    bad_input("{} of two values is not supported", lazy.op);
  }
  const Tensor inner = tensor(lazy.parts.at(0));
  if (lazy.last.is_identity()) return inner;
  if (const auto activation = lazy.last.activation()) {
    return {builder_.activation(inner.id, *activation, lazy.layer), inner.view};
  }
  const auto line = lazy.last.line();
  if (!line) {
    bad_input("it reads {} of layer '{}', which no supported activation computes", lazy.op,
              lazy.layer);
  }
  const std::int64_t channels = builder_.shape(inner.id)[1];
  return scaled_and_shifted(inner, std::vector(static_cast<std::size_t>(channels), line->factor),
                            std::vector(static_cast<std::size_t>(channels), line->shift),
                            lazy.layer);
}

Tensor Importer::scaled_and_shifted(const Tensor& of, const std::vector<double>& factors,
                                    const std::vector<double>& shifts, const std::string& layer) {
  const auto all = [](const std::vector<double>& numbers, double value) {
    return std::all_of(numbers.begin(), numbers.end(), [&](double x) { return x == value; });
  };
  const auto values = [](const std::vector<double>& numbers) {
    return make_array({}, ElementType::float64, {std::ssize(numbers)}, numbers);
  };
  Tensor made = of;
  const std::string name = layers_.take(layer);
  if (!all(factors, 1.0)) {
    made.id = builder_.fixed_scale(made.id, name);
    begin_with(name + ".scale", values(factors));
  }
  if (!all(shifts, 0.0)) {
    made.id = builder_.fixed_shift(made.id, name);
    begin_with(name + ".shift", values(shifts));
  }
  if (is_image(of)) images_.insert(made.id);
  return made;
}

Tensor Importer::emit(const Padded& padded) {
  return whole(builder_.pad(placed(padded.of, padded.layer), padded.amounts, padded.layer));
}

Tensor Importer::tensor(const std::string& name) {
  const Known value = known(name);
  if (const auto* ready = std::get_if<Tensor>(&value)) return *ready;
  if (std::holds_alternative<Array>(value)) bad_input("'{}' is a constant, not a value", name);
  Tensor made;
  if (const auto* lazy = std::get_if<Lazy>(&value)) {
    made = emit(*lazy);
  } else if (const auto* padded = std::get_if<Padded>(&value)) {
    made = emit(*padded);
  } else if (std::holds_alternative<NormPart>(value)) {
    bad_input("'{}' is a part of a normalisation that is not recognised", name);
  } else if (std::holds_alternative<HalfPooled>(value)) {
    bad_input("'{}' is an average along one axis alone, which is not supported", name);
  } else {
    bad_input("'{}' is made of random numbers in a way that is not recognised", name);
  }
  values_.insert_or_assign(name, made);
  return made;
}

Tensor Importer::tensor(const OpNode& node, std::size_t index) {
  if (!node.has_input(index)) bad_input("its input {} is missing", index);
  return tensor(node.inputs[index]);
}

ValueId Importer::placed(const Tensor& tensor, const std::string& otherwise) {
  const View& view = tensor.view;
  const std::string& layer = tensor.layer.empty() ? otherwise : tensor.layer;
  if (view == View(builder_.shape(tensor.id))) return tensor.id;
  if (const auto groups = view.shuffled()) return builder_.shuffle(tensor.id, *groups, layer);
  if (!view.is_in_order()) {
    bad_input("axes change places in a way that is no channel shuffle: {}", dims_text(view.dims()));
  }
  const Dims& dims = view.dims();
  if (dims.size() == 2) return builder_.reshape(tensor.id, {dims[0], dims[1]}, layer);
  if (dims.size() == 4) {
    return builder_.reshape(tensor.id, {dims[0], dims[1], dims[2], dims[3]}, layer);
  }
  bad_input("a value of {} axes, {}", dims.size(), dims_text(dims));
}

Tensor Importer::settled(const OpNode& node, std::size_t index) {
  const Tensor made = whole(placed(tensor(node, index), layer_of(node)));
  values_.insert_or_assign(node.inputs[index], made);
  return made;
}

void Importer::settle_order(const OpNode& node, std::size_t index) {
  const auto* value = node.has_input(index) ? std::get_if<Tensor>(input(node, index)) : nullptr;
  if (value == nullptr || !value->view.is_in_order()) return;
  const std::size_t rank = value->view.dims().size();
  if (rank == 2 || rank == 4) (void)settled(node, index);
}

ValueId Importer::image(const OpNode& node, std::size_t index) {
  const ValueId id = settled(node, index).id;
  if (builder_.shape(id).rank() != 4) {
    bad_input("takes images, but gets {}", builder_.shape(id).text());
  }
  return id;
}

void Importer::give(const std::string& name, Known value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) check_value_size(tensor->view.dims());
  if (!values_.emplace(name, std::move(value)).second) {
    bad_input("two values are called '{}'", name);
  }
}

std::string Importer::parameter_layer(const OpNode& node, std::size_t weights) {
  for (std::size_t i = weights; i < node.inputs.size(); ++i) {
    const Array* array = constant(node, i);
    if (array == nullptr) continue;
    const std::string layer = layer_of_parameter(array->name);
    if (!layer.empty() && layers_.is_free(layer)) return layers_.take(layer);
  }
  return layers_.take(layer_of(node));
}

std::string Importer::norm_layer(const Array& scale, const std::string& otherwise) {
  const std::string layer = layer_of_parameter(scale.name);
  return layers_.take(!layer.empty() && layers_.is_free(layer) ? layer : otherwise);
}

std::string Importer::scale_layer(const OpNode& node, const Array& scale) {
  const std::string name = layer_of_parameter(scale.name + ".weight");
  const std::size_t dot = name.rfind('.');
  const bool own = dot != std::string::npos && layer_of_parameter(name).empty();
  if (!own) return layers_.take(layer_of(node) + ".factor");
  if (layers_.is_free(name)) return layers_.take(name);
  // The same tensor serves several modules.
  return layers_.take(module_of_node(node) + name.substr(dot));
}

void Importer::begin_with(const std::string& parameter, const Array& values) {
  builder_.begin_with(parameter, [values] { return values.numbers(); });
}

bool Importer::is_new_head(const OpNode& node) const {
  if (plan_.wanted_classes == 0 || plan_.wanted_classes == plan_.classes) return false;
  const auto number = number_of(node);
  return std::find(plan_.heads.begin(), plan_.heads.end(), number) != plan_.heads.end();
}

std::vector<const OpNode*> Importer::readers(const std::string& name) const {
  std::vector<const OpNode*> nodes;
  const auto found = plan_.links->readers.find(name);
  if (found == plan_.links->readers.end()) return nodes;
  for (const std::size_t number : found->second) {
    if (plan_.wanted[number]) nodes.push_back(&plan_.model->nodes[number]);
  }
  return nodes;
}

const OpNode* Importer::only_reader(const std::string& name) const {
  const std::vector<const OpNode*> nodes = readers(name);
  return nodes.size() == 1 && !is_output(name) ? nodes[0] : nullptr;
}

void Importer::skip(const OpNode& node) { skipped_[number_of(node)] = true; }

bool Importer::is_output(const std::string& name) const {
  return plan_.links->outputs.contains(name);
}

ValueId Importer::logits(const std::string& output) {
  if (!values_.contains(output)) bad_input("output '{}' is written by no node", output);
  if (std::holds_alternative<Array>(known(output))) {
    bad_input("output '{}' is a constant", output);
  }
  const Tensor made = tensor(output);
  const ValueId id = placed(made, "logits");
  if (builder_.shape(id).rank() != 2) {
    bad_input("output '{}' is {}: no image classifier, which gives a number for each class", output,
              builder_.shape(id).text());
  }
  return id;
}

ValueId Importer::concat(std::vector<ValueId> parts, const std::string& layer) {
  std::vector<ValueId> left = parts;
  for (std::size_t count = parts.size() - 1; count > 1; --count) {
    const auto earlier =
        concats_.find(std::vector(parts.begin(), parts.begin() + std::ptrdiff_t(count)));
    if (earlier == concats_.end()) continue;
    left.assign(parts.begin() + std::ptrdiff_t(count), parts.end());
    left.insert(left.begin(), earlier->second);
    break;
  }
  const ValueId dst = builder_.concat(std::move(left), layer);
  concats_[std::move(parts)] = dst;
  return dst;
}

std::vector<std::string_view> supported_ops() {
  std::vector<std::string_view> names;
  for (const auto list : {layer_ops, shape_ops, element_ops}) {
    const std::vector<std::string_view> more = list();
    names.insert(names.end(), more.begin(), more.end());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ridgeline::onnx
