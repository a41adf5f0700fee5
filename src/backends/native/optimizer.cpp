#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/parallel.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/optimizer.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/lanes-inl.h"
#include "plan/patterns.h"

#ifndef RIDGELINE_NATIVE_OPTIMIZER_TYPES
#define RIDGELINE_NATIVE_OPTIMIZER_TYPES
namespace ridgeline::native {
namespace {

// Neighbouring elements of one parameter; `first` and `second` are the optimizer's state: velocity,
// or Adam's moments. The old and the new may be the same memory.
struct Piece {
  const float* parameter = nullptr;
  const std::byte* gradient = nullptr;
  DType gradient_dtype = DType::f32;
  const float* first = nullptr;
  const float* second = nullptr;
  float* new_parameter = nullptr;
  float* new_first = nullptr;
  float* new_second = nullptr;
  std::int64_t count = 0;
};

struct SgdStep {
  float rate = 0.0F, gradient_scale = 1.0F, momentum = 0.0F, weight_decay = 0.0F;
  bool nesterov = false;
};

struct AdamStep {
  float gradient_scale = 1.0F;
  float shrink = 1.0F, weight_decay = 0.0F;  // AdamW's and Adam's weight decay; one is in force
  float beta1 = 0.0F, rest1 = 0.0F, beta2 = 0.0F, rest2 = 0.0F;
  float rate = 0.0F, root_scale = 1.0F, epsilon = 0.0F;  // with the corrections for step t
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
HWY_INLINE void sgd_piece_of(const SgdStep& step, const Piece& piece) {
  const T* const gradient = reinterpret_cast<const T*>(piece.gradient);
  const hn::ScalableTag<float> d;
  const auto rate = hn::Set(d, step.rate), scale = hn::Set(d, step.gradient_scale);
  const auto momentum = hn::Set(d, step.momentum), decay = hn::Set(d, step.weight_decay);
  for_lanes(d, piece.count, [&](auto lanes, std::int64_t i) HWY_ATTR {
    const auto parameter = lanes.load(piece.parameter + i);
    auto change = hn::MulAdd(decay, parameter, hn::Mul(lanes.load(gradient + i), scale));
    if (piece.first != nullptr) {
      const auto velocity = hn::MulAdd(momentum, lanes.load(piece.first + i), change);
      lanes.store(velocity, piece.new_first + i);
      change = step.nesterov ? hn::MulAdd(momentum, velocity, change) : velocity;
    }
    lanes.store(hn::NegMulAdd(rate, change, parameter), piece.new_parameter + i);
  });
}

template <typename T>
HWY_INLINE void adam_piece_of(const AdamStep& step, const Piece& piece) {
  const T* const gradient = reinterpret_cast<const T*>(piece.gradient);
  const hn::ScalableTag<float> d;
  const auto scale = hn::Set(d, step.gradient_scale);
  const auto shrink = hn::Set(d, step.shrink), decay = hn::Set(d, step.weight_decay);
  const auto beta1 = hn::Set(d, step.beta1), rest1 = hn::Set(d, step.rest1);
  const auto beta2 = hn::Set(d, step.beta2), rest2 = hn::Set(d, step.rest2);
  const auto rate = hn::Set(d, step.rate), epsilon = hn::Set(d, step.epsilon);
  const auto root_scale = hn::Set(d, step.root_scale);
  for_lanes(d, piece.count, [&](auto lanes, std::int64_t i) HWY_ATTR {
    const auto parameter = lanes.load(piece.parameter + i);
    const auto diff = hn::MulAdd(decay, parameter, hn::Mul(lanes.load(gradient + i), scale));
    const auto first = hn::MulAdd(beta1, lanes.load(piece.first + i), hn::Mul(rest1, diff));
    const auto second =
        hn::MulAdd(beta2, lanes.load(piece.second + i), hn::Mul(rest2, hn::Mul(diff, diff)));
    const auto denominator = hn::MulAdd(hn::Sqrt(second), root_scale, epsilon);
    lanes.store(first, piece.new_first + i);
    lanes.store(second, piece.new_second + i);
    lanes.store(hn::MulAdd(shrink, parameter, hn::Neg(hn::Div(hn::Mul(rate, first), denominator))),
                piece.new_parameter + i);
  });
}

void sgd_piece(const SgdStep& step, const Piece& piece) {
  with_element(piece.gradient_dtype,
               [&](auto element) HWY_ATTR { sgd_piece_of<decltype(element)>(step, piece); });
}

void adam_piece(const AdamStep& step, const Piece& piece) {
  with_element(piece.gradient_dtype,
               [&](auto element) HWY_ATTR { adam_piece_of<decltype(element)>(step, piece); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(sgd_piece);
HWY_EXPORT(adam_piece);

SgdStep step_of(const SgdAttributes& attributes, const StepState& state) {
  return {.rate = static_cast<float>(state.learning_rate),
          .gradient_scale = static_cast<float>(1.0 / state.gradient_scale),
          .momentum = static_cast<float>(attributes.momentum),
          .weight_decay = static_cast<float>(attributes.weight_decay),
          .nesterov = attributes.nesterov};
}

AdamStep step_of(const AdamAttributes& attributes, const StepState& state) {
  const auto t = static_cast<double>(state.updates());
  const double correction1 = 1.0 - std::pow(attributes.beta1, t);
  const double correction2 = 1.0 - std::pow(attributes.beta2, t);
  const double shrink =
      attributes.decoupled ? 1.0 - state.learning_rate * attributes.weight_decay : 1.0;
  return {.gradient_scale = static_cast<float>(1.0 / state.gradient_scale),
          .shrink = static_cast<float>(shrink),
          .weight_decay = attributes.decoupled ? 0.0F : static_cast<float>(attributes.weight_decay),
          .beta1 = static_cast<float>(attributes.beta1),
          .rest1 = static_cast<float>(1.0 - attributes.beta1),
          .beta2 = static_cast<float>(attributes.beta2),
          .rest2 = static_cast<float>(1.0 - attributes.beta2),
          .rate = static_cast<float>(state.learning_rate / correction1),
          .root_scale = static_cast<float>(1.0 / std::sqrt(correction2)),
          .epsilon = static_cast<float>(attributes.epsilon)};
}

void update(const SgdStep& step, const Piece& piece) {
  HWY_DYNAMIC_DISPATCH(sgd_piece)(step, piece);
}
void update(const AdamStep& step, const Piece& piece) {
  HWY_DYNAMIC_DISPATCH(adam_piece)(step, piece);
}

// Where one node's values stand among the kernel's arguments.
struct Place {
  std::array<std::size_t, 4> inputs{};   // parameter, gradient, state
  std::array<std::size_t, 3> outputs{};  // parameter, state
  std::size_t states = 0;
  std::int64_t begin = 0, count = 0;  // its elements among those of all nodes
};

// The updates of all nodes of the pattern. Threads share the elements of all parameters evenly, so
// that many small ones cost no more than a large one.
template <typename OptimizerAttributes>
class Optimizer final : public Kernel {
 public:
  explicit Optimizer(const Problem& problem)
      : attributes_(std::get<OptimizerAttributes>(problem.node().attributes)) {
    for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
      const Node& node = problem.node(i);
      Place place;
      place.states = node.inputs.size() - 2;
      place.begin = total_;
      place.count = problem.graph->value(node.inputs[0]).spec.shape.elements();
      for (std::size_t j = 0; j < node.inputs.size(); ++j) {
        place.inputs[j] = problem.input_index(node.inputs[j]);
      }
      for (std::size_t j = 0; j < node.outputs.size(); ++j) {
        place.outputs[j] = problem.output_index(node.outputs[j]);
      }
      total_ += place.count;
      places_.push_back(place);
    }
  }

  void run(const KernelArgs& args) const override {
    constexpr std::int64_t kElementsWorthAThread = 16384;
    const auto step = step_of(attributes_, *args.state);
    const bool skip = args.state->overflow != 0;
    parallel_for(total_, kElementsWorthAThread, [&](std::int64_t begin, std::int64_t end) {
      for (const Place& place : places_) {
        const Range range{std::max(begin, place.begin), std::min(end, place.begin + place.count)};
        if (range.begin >= range.end) continue;
        const Piece piece =
            piece_of(args, place, {range.begin - place.begin, range.end - place.begin});
        if (skip) {
          keep(piece);
        } else {
          update(step, piece);
        }
      }
    });
  }

 private:
  static Piece piece_of(const KernelArgs& args, const Place& place, Range range) {
    const auto input = [&](std::size_t i) {
      return args.inputs[place.inputs[i]].as<const float>() + range.begin;
    };
    const auto output = [&](std::size_t i) {
      return args.outputs[place.outputs[i]].as<float>() + range.begin;
    };
    Piece piece;
    piece.parameter = input(0);
    const Tensor& gradient = args.inputs[place.inputs[1]];
    piece.gradient_dtype = gradient.spec.dtype;
    piece.gradient =
        gradient.data + range.begin * static_cast<std::int64_t>(size_of(gradient.spec.dtype));
    piece.new_parameter = output(0);
    if (place.states > 0) {
      piece.first = input(2);
      piece.new_first = output(1);
    }
    if (place.states > 1) {
      piece.second = input(3);
      piece.new_second = output(2);
    }
    piece.count = range.end - range.begin;
    return piece;
  }

  // Nothing changes; new values that have memory of their own get the old ones.
  static void keep(const Piece& piece) {
    const auto copy = [&](const float* from, float* to) {
      if (to != nullptr && to != from) std::copy_n(from, piece.count, to);
    };
    copy(piece.parameter, piece.new_parameter);
    copy(piece.first, piece.new_first);
    copy(piece.second, piece.new_second);
  }

  OptimizerAttributes attributes_;
  std::vector<Place> places_;
  std::int64_t total_ = 0;
};

template <typename OptimizerAttributes>
std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Optimizer<OptimizerAttributes>>(problem);
  set_layouts(*kernel, problem, Layout::plain());
  kernel->traits.in_place = true;
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"sgd_all", patterns::run_of_same<OpKind::sgd>, refuse_other_than_floats, make<SgdAttributes>},
    {"adam_all", patterns::run_of_same<OpKind::adam>, refuse_other_than_floats,
     make<AdamAttributes>},
    {"sgd", match_one<OpKind::sgd>, refuse_other_than_floats, make<SgdAttributes>},
    {"adam", match_one<OpKind::adam>, refuse_other_than_floats, make<AdamAttributes>},
};

}  // namespace

std::span<const KernelRow> optimizer_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
