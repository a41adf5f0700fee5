#pragma once

// cuDNN's graph interface: everything is a descriptor with attributes, finalized once. A graph of
// operations is offered to the library, which names engines with settings for it; one of those
// makes a plan, and a plan runs.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cudnn/library.h"

namespace ridgeline::cudnn {

using AttributeType = cudnnBackendAttributeType_t;

// How cuDNN names the type of an attribute's values.
constexpr AttributeType type_of(const std::int64_t*) { return CUDNN_TYPE_INT64; }
constexpr AttributeType type_of(const float*) { return CUDNN_TYPE_FLOAT; }
constexpr AttributeType type_of(const double*) { return CUDNN_TYPE_DOUBLE; }
constexpr AttributeType type_of(const bool*) { return CUDNN_TYPE_BOOLEAN; }
constexpr AttributeType type_of(void* const*) { return CUDNN_TYPE_VOID_PTR; }
constexpr AttributeType type_of(const cudnnHandle_t*) { return CUDNN_TYPE_HANDLE; }
constexpr AttributeType type_of(const cudnnDataType_t*) { return CUDNN_TYPE_DATA_TYPE; }
constexpr AttributeType type_of(const cudnnConvolutionMode_t*) {
  return CUDNN_TYPE_CONVOLUTION_MODE;
}
constexpr AttributeType type_of(const cudnnPointwiseMode_t*) { return CUDNN_TYPE_POINTWISE_MODE; }
constexpr AttributeType type_of(const cudnnBackendHeurMode_t*) { return CUDNN_TYPE_HEUR_MODE; }
constexpr AttributeType type_of(const cudnnBackendKnobType_t*) { return CUDNN_TYPE_KNOB_TYPE; }
constexpr AttributeType type_of(const cudnnBackendNumericalNote_t*) {
  return CUDNN_TYPE_NUMERICAL_NOTE;
}

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  template <typename T>
  void set(cudnnBackendAttributeName_t name, const T& value) {
    set_raw(name, type_of(&value), 1, &value);
  }
  template <typename T, std::size_t count>
  void set(cudnnBackendAttributeName_t name, const std::array<T, count>& values) {
    set_raw(name, type_of(values.data()), count, values.data());
  }
  template <typename T>
  void set(cudnnBackendAttributeName_t name, const std::vector<T>& values) {
    set_raw(name, type_of(values.data()), values.size(), values.data());
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value);
  void set(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& values);

  // The value of an attribute, or those of one that has at most `most`.
  template <typename T>
  [[nodiscard]] T get(cudnnBackendAttributeName_t name) const {
    T value{};
    (void)get_raw(name, type_of(&value), 1, &value);
    return value;
  }
  template <typename T>
  [[nodiscard]] std::vector<T> get_some(cudnnBackendAttributeName_t name, std::size_t most) const {
    std::vector<T> values(most);
    values.resize(get_raw(name, type_of(values.data()), most, values.data()));
    return values;
  }
  // How many descriptors an attribute may have at most, and those it has, of a type.
  [[nodiscard]] std::size_t count(cudnnBackendAttributeName_t name) const;
  [[nodiscard]] std::vector<Descriptor> get_descriptors(cudnnBackendAttributeName_t name,
                                                        cudnnBackendDescriptorType_t type,
                                                        std::size_t most) const;

  // True when cuDNN accepts what was set; `finalize` throws when it does not.
  [[nodiscard]] bool accepted();
  void finalize(const char* what);

  [[nodiscard]] cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  void set_raw(cudnnBackendAttributeName_t name, AttributeType type, std::size_t count,
               const void* values);
  [[nodiscard]] std::size_t get_raw(cudnnBackendAttributeName_t name, AttributeType type,
                                    std::size_t most, void* values) const;

  cudnnBackendDescriptor_t raw_ = nullptr;
};

// A tensor of a graph. Virtual ones have no memory: their values go from one operation to the next.
struct TensorPlace {
  std::int64_t id = 0;
  std::array<std::int64_t, 4> dims{}, strides{};
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  bool is_virtual = false;
};

// What all addresses given to cuDNN are multiples of.
inline constexpr std::size_t kAlignment = 16;

[[nodiscard]] Descriptor describe(const TensorPlace& tensor);

// An engine with its settings, as the heuristics propose it.
struct Engine {
  Descriptor config;
  std::string name;  // "eng62{2=0,13=1}": the same text for the same engine and settings
  std::vector<cudnnBackendNumericalNote_t> notes;

  [[nodiscard]] bool has(cudnnBackendNumericalNote_t note) const;
};

class OperationGraph {
 public:
  // `parts`: what the operations refer to.
  OperationGraph(std::deque<Descriptor> parts, std::vector<Descriptor> operations);

  // Best first; none where the library has no engine for the graph, or does not take it at all.
  [[nodiscard]] std::vector<Engine> engines(cudnnBackendHeurMode_t mode) const;

 private:
  std::deque<Descriptor> parts_;
  std::vector<Descriptor> operations_;
  Descriptor graph_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
  bool accepted_ = false;
};

class ExecutionPlan {
 public:
  // Null when the engine refuses after all. The graph lives as long as its plans.
  [[nodiscard]] static std::unique_ptr<ExecutionPlan> make(
      std::shared_ptr<const OperationGraph> graph, const Engine& engine);

  [[nodiscard]] std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Queues the plan; tensor ids[i] lies at addresses[i].
  void execute(const std::vector<std::int64_t>& ids, const std::vector<void*>& addresses,
               void* workspace, Stream stream) const;

 private:
  explicit ExecutionPlan(std::shared_ptr<const OperationGraph> graph) : graph_(std::move(graph)) {}

  std::shared_ptr<const OperationGraph> graph_;
  Descriptor plan_{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR};
  std::size_t workspace_bytes_ = 0;
};

}  // namespace ridgeline::cudnn
