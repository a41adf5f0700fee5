#pragma once

// The one case list of the op tests: the gradient check, every backend's comparison with the
// reference and the table of support and speed all read it. Adding an op means adding its cases.

#include <string>
#include <vector>

#include "graph/graph.h"

namespace ridgeline::testing {

// What the elements of a case's input are.
enum class Data : std::uint8_t {
  normal,         // mean 0, deviation 1
  one_infinite,   // the same, but for one element
  shifted,        // mean 20, deviation 1
  large,          // mean 0, deviation 30
  distinct,       // no two equal, none near the kinks 0 and 6: for maxima and rectifiers
  positive,       // in [0.5, 1.5): variances and second moments
  activated,      // dst of the activation whose gradient is taken
  probabilities,  // rows that add up to 1
  positions,      // of the maxima that a pool found
  labels,         // below the classes of the logits beside them
  samples,        // any number from 0 on
  pixels,         // 0 to 255
};

// A small graph, mostly of one node; several nodes make a pattern that a backend may cover with one
// kernel or with several. The values that no node produces come first, so that ids stay the same
// when the graph is made again in another type.
struct OpCase {
  std::string name;  // "conv2d.depthwise_3x3": the op, or "pattern", and what is special
  Graph graph;
  std::vector<Data> data;  // of each value that no node produces
  StepState state;
  bool big = false;           // of a real network: left out where many repetitions would take long
  bool mostly_zeros = false;  // the right answer; otherwise such a case is mistrusted
};

[[nodiscard]] const std::vector<OpCase>& op_cases();

// Writes a case down. Values are named by their number.
class CaseBuilder {
 public:
  explicit CaseBuilder(std::string name);

  ValueId input(Shape shape, Data data = Data::normal, DType dtype = DType::f32);
  ValueId parameter(Shape shape, Data data = Data::normal);
  ValueId state(Shape shape, Role role, Data data = Data::normal, DType dtype = DType::f32);
  // The first output of a new node; further ones have the numbers that follow.
  ValueId node(OpKind kind, std::vector<ValueId> inputs, Attributes attributes = {});
  // Makes a value that nodes use an output of the case too.
  void keep(ValueId value) { case_.graph.mark_output(value); }
  StepState& step() { return case_.state; }
  void expect_zeros() { case_.mostly_zeros = true; }
  Graph& graph() { return case_.graph; }
  [[nodiscard]] const Shape& shape(ValueId value) const {
    return case_.graph.value(value).spec.shape;
  }
  // Marks every value that no node uses as an output.
  [[nodiscard]] OpCase done(bool big = false);

 private:
  ValueId add(Shape shape, DType dtype, Role role, Data data);

  OpCase case_;
};

// The parts of the list, one for each family of ops.
void add_conv2d_cases(std::vector<OpCase>& cases);
void add_linear_cases(std::vector<OpCase>& cases);
void add_elementwise_cases(
    std::vector<OpCase>& cases);  // bias, activation, add, dropout, normalize
// concat, slice, split, shuffle, pad, resize, reshape
void add_shape_cases(std::vector<OpCase>& cases);
void add_pool_cases(std::vector<OpCase>& cases);
void add_batch_norm_cases(std::vector<OpCase>& cases);
void add_layer_norm_cases(std::vector<OpCase>& cases);
void add_multiply_cases(std::vector<OpCase>& cases);
void add_training_cases(std::vector<OpCase>& cases);  // loss, metrics, optimizers
void add_pattern_cases(std::vector<OpCase>& cases);
void add_channel_pattern_cases(std::vector<OpCase>& cases);
void add_conv_norm_cases(std::vector<OpCase>& cases);

}  // namespace ridgeline::testing
