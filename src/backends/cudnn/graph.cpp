#include "backends/cudnn/graph.h"

#include <fmt/core.h>

#include <algorithm>

namespace ridgeline::cudnn {
namespace {

// "62{2=0,13=1}": an engine's number with the settings that were chosen for it.
std::string name_of(const Descriptor& config, const Descriptor& engine) {
  std::string settings;
  for (const Descriptor& choice :
       config.get_descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                              CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
    const auto knob = choice.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
    const auto value = choice.get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
    settings += fmt::format("{}{}={}", settings.empty() ? "" : ",", static_cast<int>(knob), value);
  }
  const auto index = engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  if (settings.empty()) return fmt::format("eng{}", index);
  return fmt::format("eng{}{{{}}}", index, settings);
}

}  // namespace

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check(dnn().create_descriptor(type, &raw_), "making a descriptor");
}

Descriptor::~Descriptor() {
  if (raw_ != nullptr) (void)dnn().destroy_descriptor(raw_);
}

void Descriptor::set_raw(cudnnBackendAttributeName_t name, AttributeType type, std::size_t count,
                         const void* values) {
  check(dnn().set_attribute(raw_, name, type, static_cast<std::int64_t>(count), values),
        "setting an attribute");
}

void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.raw_);
}

void Descriptor::set(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& value : values) raw.push_back(value.raw_);
  set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), raw.data());
}

std::size_t Descriptor::get_raw(cudnnBackendAttributeName_t name, AttributeType type,
                                std::size_t most, void* values) const {
  std::int64_t count = 0;
  check(dnn().get_attribute(raw_, name, type, static_cast<std::int64_t>(most), &count, values),
        "reading an attribute");
  return std::min(static_cast<std::size_t>(count), most);
}

std::size_t Descriptor::count(cudnnBackendAttributeName_t name) const {
  std::int64_t count = 0;
  check(dnn().get_attribute(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
        "counting an attribute");
  return static_cast<std::size_t>(count);
}

// The library fills descriptors that the caller has made.
std::vector<Descriptor> Descriptor::get_descriptors(cudnnBackendAttributeName_t name,
                                                    cudnnBackendDescriptorType_t type,
                                                    std::size_t most) const {
  std::vector<Descriptor> values;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::size_t i = 0; i < most; ++i) raw.push_back(values.emplace_back(type).raw_);
  const std::size_t count = get_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(count), values.end());
  return values;
}

bool Descriptor::accepted() { return dnn().finalize(raw_) == CUDNN_STATUS_SUCCESS; }

void Descriptor::finalize(const char* what) { check(dnn().finalize(raw_), what); }

Descriptor describe(const TensorPlace& tensor) {
  Descriptor descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.id);
  descriptor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, tensor.type);
  descriptor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.dims);
  descriptor.set(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides);
  descriptor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, static_cast<std::int64_t>(kAlignment));
  descriptor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.is_virtual);
  descriptor.finalize("describing a tensor");
  return descriptor;
}

bool Engine::has(cudnnBackendNumericalNote_t note) const {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

OperationGraph::OperationGraph(std::deque<Descriptor> parts, std::vector<Descriptor> operations)
    : parts_(std::move(parts)), operations_(std::move(operations)) {
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, cudnn_handle());
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  accepted_ = graph_.accepted();
}

std::vector<Engine> OperationGraph::engines(cudnnBackendHeurMode_t mode) const {
  if (!accepted_) return {};
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (!heuristics.accepted()) return {};
  std::vector<Engine> engines;
  for (Descriptor& config :
       heuristics.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                  heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS))) {
    const std::vector<Descriptor> found =
        config.get_descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
    if (found.empty()) continue;
    std::string name = name_of(config, found[0]);
    engines.push_back({std::move(config), std::move(name),
                       found[0].get_some<cudnnBackendNumericalNote_t>(
                           CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT)});
  }
  return engines;
}

std::unique_ptr<ExecutionPlan> ExecutionPlan::make(std::shared_ptr<const OperationGraph> graph,
                                                   const Engine& engine) {
  std::unique_ptr<ExecutionPlan> made(new ExecutionPlan(std::move(graph)));
  made->plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, cudnn_handle());
  made->plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.config);
  if (!made->plan_.accepted()) return nullptr;
  made->workspace_bytes_ = static_cast<std::size_t>(
      made->plan_.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  return made;
}

void ExecutionPlan::execute(const std::vector<std::int64_t>& ids,
                            const std::vector<void*>& addresses, void* workspace,
                            Stream stream) const {
  Descriptor arguments(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  arguments.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  arguments.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses);
  arguments.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  arguments.finalize("binding a plan's tensors");
  check(dnn().execute(cudnn_handle(stream), plan_.raw(), arguments.raw()), "running a plan");
}

}  // namespace ridgeline::cudnn
