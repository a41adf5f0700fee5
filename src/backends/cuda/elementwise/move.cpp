// Ops that put pixels and channels elsewhere: shuffle, alone and with the halves it joins or parts,
// pad, resize; and resize's gradient.

#include "backends/cuda/conv/image_rows.h"
#include "backends/cuda/elementwise/halves_kernels.h"
#include "backends/cuda/elementwise/move_kernels.h"
#include "backends/cuda/pool/window_sums_kernels.h"
#include "backends/cuda/rows.h"
#include "plan/patterns.h"

namespace ridgeline::cuda {
namespace {

class ShuffleKernel final : public Kernel {
 public:
  explicit ShuffleKernel(std::int64_t groups) : groups_(groups) {}

  void run(const KernelArgs& args) const override {
    Shuffle task;
    task.element_bytes = static_cast<int>(size_of(args.inputs[0].spec.dtype));
    task.groups = groups_;
    task.src = rows_of(args.inputs[0]);
    task.dst = rows_of(args.outputs[0]);
    launch_shuffle(task, stream_of(args));
  }

 private:
  std::int64_t groups_;
};

// concat of two equal halves and the shuffle with two groups behind it, and the gradient of that.
class HalvesKernel final : public Kernel {
 public:
  HalvesKernel(const patterns::Halves& halves, bool joins) : halves_(halves), joins_(joins) {}

  void run(const KernelArgs& args) const override {
    const std::span<const Tensor> apart = joins_ ? args.inputs : args.outputs;
    const Tensor& both = joins_ ? args.outputs[0] : args.inputs[0];
    HalvesTask task;
    task.element_bytes = static_cast<int>(size_of(both.spec.dtype));
    task.first = rows_of(apart[halves_.first]);
    task.second = rows_of(apart[halves_.second]);
    task.both = rows_of(both);
    if (joins_) {
      launch_interleave(task, stream_of(args));
    } else {
      launch_separate(task, stream_of(args));
    }
  }

 private:
  patterns::Halves halves_;
  bool joins_;
};

// What does not change from run to run.
MovePixels move_of(const TensorSpec& src, const Shape& dst) {
  MovePixels task;
  task.element_bytes = static_cast<int>(size_of(src.dtype));
  task.rows.size = src.shape.height();
  task.rows.dst_size = dst.height();
  task.columns.size = src.shape.width();
  task.columns.dst_size = dst.width();
  return task;
}

class Move final : public Kernel {
 public:
  explicit Move(const MovePixels& task) : task_(task) {}

  void run(const KernelArgs& args) const override {
    MovePixels task = task_;
    task.src = rows_of(args.inputs[0]);
    task.dst = rows_of(args.outputs[0]);
    launch_move_pixels(task, stream_of(args));
  }

 private:
  MovePixels task_;
};

class ResizeBackward final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    const Shape &from = args.inputs[0].shape(), &to = args.outputs[0].shape();
    WindowSums task;
    task.rule = WindowRule::resize_backward;
    task.dtype = args.inputs[0].spec.dtype;
    task.src_h = from[2], task.src_w = from[3];
    task.dst_h = to[2], task.dst_w = to[3];
    task.src = rows_of(args.inputs[0]);
    task.dst = rows_of(args.outputs[0]);
    launch_window_sums(task, stream_of(args));
  }
};

std::unique_ptr<Kernel> finished(std::unique_ptr<Kernel> kernel, const Problem& problem) {
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

std::unique_ptr<Kernel> make_shuffle(const Problem& problem, std::span<const Layout>) {
  const auto& attributes = std::get<ShuffleAttributes>(problem.node().attributes);
  return finished(std::make_unique<ShuffleKernel>(attributes.groups), problem);
}

std::unique_ptr<Kernel> make_halves(const Problem& problem, std::span<const Layout>) {
  const bool joins = problem.node().kind == OpKind::concat;
  return finished(std::make_unique<HalvesKernel>(patterns::halves_of(problem), joins), problem);
}

std::unique_ptr<Kernel> make_pad(const Problem& problem, std::span<const Layout>) {
  const auto& attributes = std::get<PadAttributes>(problem.node().attributes);
  MovePixels task = move_of(problem.input(0), problem.output(0).shape);
  task.rows.offset = -attributes.top;
  task.columns.offset = -attributes.left;
  task.channel_offset = -attributes.channels_before;
  return finished(std::make_unique<Move>(task), problem);
}

std::unique_ptr<Kernel> make_resize(const Problem& problem, std::span<const Layout>) {
  MovePixels task = move_of(problem.input(0), problem.output(0).shape);
  for (MoveAxis* axis : {&task.rows, &task.columns}) {
    axis->src = axis->size;
    axis->dst = axis->dst_size;
  }
  return finished(std::make_unique<Move>(task), problem);
}

std::unique_ptr<Kernel> make_resize_backward(const Problem& problem, std::span<const Layout>) {
  return finished(std::make_unique<ResizeBackward>(), problem);
}

// Packs of both images are counted in 31 bits.
std::string check_move(const Problem& problem) {
  for (const Shape& shape : {problem.input(0).shape, problem.output(0).shape}) {
    if (shape.elements() >= std::int64_t{1} << 31) return "2^31 elements or more";
  }
  return check_channels(problem);
}

constexpr KernelRow kRows[] = {
    {"concat_shuffle", patterns::concat_shuffle, check_move, make_halves},
    {"shuffle_slices", patterns::shuffle_slices, check_move, make_halves},
    {"shuffle", match_one<OpKind::shuffle>, check_move, make_shuffle},
    {"pad", match_one<OpKind::pad>, check_move, make_pad},
    {"resize", match_one<OpKind::resize>, check_move, make_resize},
    {"resize_backward", match_one<OpKind::resize_backward>, check_move, make_resize_backward},
};

}  // namespace

std::span<const KernelRow> move_rows() { return kRows; }

}  // namespace ridgeline::cuda
