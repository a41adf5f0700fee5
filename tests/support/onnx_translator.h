#pragma once

// Turns an ONNX model with its inputs into a Graph of our ops, where they can say the same. What
// surrounds an op in ONNX and is no computation of ours (transposed operands, other ways to count a
// position) is done on the host, before on inputs or after on outputs.

#include <fmt/core.h>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx/file.h"

namespace ridgeline::onnx {

// Thrown when our ops cannot say what the model says.
struct Unsupported {
  std::string reason;
};

template <typename... Args>
[[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) {
  throw Unsupported{fmt::format(format, std::forward<Args>(args)...)};
}

// Gives the elements of a graph value after the run, in logical order.
using ReadValue = std::function<std::vector<double>(ValueId)>;
// Makes an output of the model from graph values.
using Derive = std::function<std::vector<double>(const ReadValue&)>;

struct GraphInput {
  std::string name;
  std::vector<std::byte> bytes;
};

struct ModelOutput {
  std::string name;
  Dims dims;
  Derive read;
};

struct Translation {
  Graph graph;
  StepState state;
  std::vector<GraphInput> inputs;
  std::vector<ModelOutput> outputs;
};

// `inputs` are the model's, in its order; those that have an initializer may be left out at the
// end.
[[nodiscard]] Translation translate(const Model& model, const std::vector<Array>& inputs);

// What the translations of single ops work with. A value of the model is constant (known on the
// host), computed (a value of the graph, same elements in the same row-major order), or derived
// from computed ones on the host after the run, and then of no use to further ops.
class Translator {
 public:
  Translator(const Model& model, const std::vector<Array>& inputs);

  [[nodiscard]] std::int64_t opset() const { return opset_; }
  [[nodiscard]] const Dims& dims(const std::string& name) const;
  StepState& state() { return result_.state; }
  [[nodiscard]] const Graph& graph() const { return result_.graph; }

  // The numbers of a constant of any type, or of one that must be float32.
  [[nodiscard]] const Array& constant(const std::string& name) const;
  [[nodiscard]] const Array& floats(const std::string& name) const;
  // The value in the graph, under a shape with as many elements.
  [[nodiscard]] ValueId place(const std::string& name, const Shape& shape);
  // New values of the graph.
  [[nodiscard]] ValueId input(const std::vector<double>& numbers, const Shape& shape,
                              Role role = Role::input, DType dtype = DType::f32);
  std::vector<ValueId> node(OpKind kind, Attributes attributes, std::vector<ValueId> inputs,
                            Phase phase = Phase::forward);

  void give_constant(const std::string& name, Array array);
  void give(const std::string& name, Dims dims, ValueId id);
  void derive(const std::string& name, Dims dims, std::vector<ValueId> from, Derive read);
  // The same elements under other dimensions.
  void give_same(const std::string& name, Dims dims, const std::string& source);

  [[nodiscard]] Translation finish(const Model& model);

 private:
  struct Known {
    enum class Kind : std::uint8_t { constant, computed, derived };
    Kind kind = Kind::constant;
    Dims dims;
    Array array;
    ValueId id = kNoValue;
    Derive read;
  };

  [[nodiscard]] const Known& known(const std::string& name) const;
  [[nodiscard]] std::string new_name(const std::string& prefix);

  std::int64_t opset_;
  std::map<std::string, Known> values_;
  int names_ = 0;
  Translation result_;
};

// The translations, by the kind of op; each is given a node of the types it knows.
using TranslateNode = void (*)(Translator&, const OpNode&);
[[nodiscard]] TranslateNode find_image_op(const std::string& type);     // convolution, pools, norms
[[nodiscard]] TranslateNode find_matrix_op(const std::string& type);    // products, sums, shapes
[[nodiscard]] TranslateNode find_training_op(const std::string& type);  // softmax, loss, optimizers

// An axis counted from the end made one counted from the start.
[[nodiscard]] std::size_t axis_of(std::int64_t axis, const Dims& dims);
// Product of the dimensions in [begin, end).
[[nodiscard]] std::int64_t product(const Dims& dims, std::size_t begin, std::size_t end);
// (first dimension, all others): how element by element ops see a value.
[[nodiscard]] Shape as_rows(const Dims& dims);

}  // namespace ridgeline::onnx
