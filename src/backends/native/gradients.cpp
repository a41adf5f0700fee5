// What is done to all gradients of a step together. Bound by memory: plain loops that the compiler
// turns into vectors.

#include <cmath>
#include <vector>

#include "backends/native/rows.h"
#include "base/error.h"
#include "base/half.h"
#include "base/parallel.h"

namespace ridgeline::native {
namespace {

// Neighbouring elements of one tensor that one thread takes at a time: partial sums do not depend
// on the number of threads.
constexpr std::int64_t kPiece = 16384;

struct Piece {
  std::size_t tensor = 0;
  std::int64_t first = 0, count = 0;
};

std::vector<Piece> pieces_of(const Problem& problem, std::span<const ValueId> values) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t elements = problem.graph->value(values[i]).spec.shape.elements();
    for (std::int64_t first = 0; first < elements; first += kPiece) {
      pieces.push_back({i, first, std::min(kPiece, elements - first)});
    }
  }
  return pieces;
}

// Calls body with the element type of a tensor: float or BFloat16.
template <typename Body>
void with_type(DType dtype, Body&& body) {
  if (dtype == DType::bf16) {
    body(BFloat16{});
  } else {
    body(float{});
  }
}

float wide(float value) { return value; }
float wide(BFloat16 value) { return float_of(value); }
void store(float value, float& to) { to = value; }
void store(float value, BFloat16& to) { to = bf16_of(value); }

class Accumulate final : public Kernel {
 public:
  explicit Accumulate(const Problem& problem)
      : first_(std::get<AccumulateAttributes>(problem.node().attributes).first),
        sums_(problem.node().inputs.size() / 2),
        pieces_(pieces_of(problem, std::span(problem.node().inputs).first(sums_))) {
    for (const ValueId input : problem.node().inputs) {
      arguments_.push_back(problem.input_index(input));
    }
  }

  void run(const KernelArgs& args) const override {
    parallel_for(static_cast<std::int64_t>(pieces_.size()), 1,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t p = begin; p < end; ++p) {
                     add(args, pieces_[static_cast<std::size_t>(p)]);
                   }
                 });
  }

 private:
  void add(const KernelArgs& args, const Piece& piece) const {
    const Tensor& value = args.inputs[arguments_[sums_ + piece.tensor]];
    const auto* sum = args.inputs[arguments_[piece.tensor]].as<const float>() + piece.first;
    auto* dst = args.outputs[piece.tensor].as<float>() + piece.first;
    with_type(value.spec.dtype, [&](auto type) {
      const auto* src = value.as<const decltype(type)>() + piece.first;
      for (std::int64_t i = 0; i < piece.count; ++i) {
        dst[i] = first_ ? wide(src[i]) : sum[i] + wide(src[i]);
      }
    });
  }

  bool first_;
  std::size_t sums_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> arguments_;
};

class ClipNorm final : public Kernel {
 public:
  explicit ClipNorm(const Problem& problem)
      : attributes_(std::get<ClipNormAttributes>(problem.node().attributes)),
        pieces_(pieces_of(problem, problem.inputs)) {
    workspace_bytes = pieces_.size() * sizeof(double);
  }

  void run(const KernelArgs& args) const override {
    auto* const squares = reinterpret_cast<double*>(args.workspace);
    const auto count = static_cast<std::int64_t>(pieces_.size());
    for_each_piece([&](std::size_t p) { squares[p] = sum_of_squares(args, pieces_[p]); });
    double total = 0.0;
    for (std::int64_t p = 0; p < count; ++p) total += squares[p];
    const double norm = std::sqrt(total) / args.state->gradient_scale;
    const auto factor = static_cast<float>(clip_factor(attributes_, norm));
    // The new versions lie where the gradients lie.
    if (factor == 1.0F) return;
    for_each_piece([&](std::size_t p) { shrink(args, pieces_[p], factor); });
  }

 private:
  template <typename Body>
  void for_each_piece(Body&& body) const {
    parallel_for(static_cast<std::int64_t>(pieces_.size()), 1,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t p = begin; p < end; ++p) body(static_cast<std::size_t>(p));
                 });
  }

  // Eight sums side by side, so that vectors fit.
  static double sum_of_squares(const KernelArgs& args, const Piece& piece) {
    const Tensor& gradient = args.inputs[piece.tensor];
    double sums[8] = {};
    with_type(gradient.spec.dtype, [&](auto type) {
      const auto* src = gradient.as<const decltype(type)>() + piece.first;
      for (std::int64_t i = 0; i < piece.count; ++i) {
        const double value = wide(src[i]);
        sums[i % 8] += value * value;
      }
    });
    double total = 0.0;
    for (const double sum : sums) total += sum;
    return total;
  }

  static void shrink(const KernelArgs& args, const Piece& piece, float factor) {
    const Tensor &from = args.inputs[piece.tensor], &to = args.outputs[piece.tensor];
    with_type(from.spec.dtype, [&](auto type) {
      using T = decltype(type);
      const auto* src = from.as<const T>() + piece.first;
      auto* dst = to.as<T>() + piece.first;
      for (std::int64_t i = 0; i < piece.count; ++i) {
        store(wide(src[i]) * factor, dst[i]);
      }
    });
  }

  ClipNormAttributes attributes_;
  std::vector<Piece> pieces_;
};

std::string check_types(const Problem& problem) {
  for (const ValueId id : problem.inputs) {
    const DType dtype = problem.graph->value(id).spec.dtype;
    if (dtype != DType::f32 && dtype != DType::bf16) {
      return fmt::format("native computes in f32 and bf16, not {}", name_of(dtype));
    }
  }
  return {};
}

template <typename GradientKernel>
std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<GradientKernel>(problem);
  set_layouts(*kernel, problem, Layout::plain());
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"accumulate", match_one<OpKind::accumulate>, check_types, make<Accumulate>},
    {"clip_norm", match_one<OpKind::clip_norm>, check_types, make<ClipNorm>},
};

}  // namespace

std::span<const KernelRow> gradient_rows() { return kRows; }

}  // namespace ridgeline::native
