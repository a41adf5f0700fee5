// normalize: the batch as it arrives, u8 in plain order, becomes the network's first image.

#include <algorithm>

#include "backends/cuda/common.h"
#include "backends/cuda/norm/normalize_kernels.h"
#include "backends/cuda/rows.h"

namespace ridgeline::cuda {
namespace {

class Normalize final : public Kernel {
 public:
  explicit Normalize(NormalizeAttributes attributes) : attributes_(std::move(attributes)) {}

  void run(const KernelArgs& args) const override {
    const Tensor &src = args.inputs[0], &dst = args.outputs[0];
    if (dst.data == nullptr) return;
    const Shape& shape = dst.shape();
    NormalizeTask task;
    if (attributes_.flip) task.samples = args.inputs[1].as<std::int32_t>();
    task.dtype = dst.spec.dtype;
    task.batch = shape[0];
    task.height = shape[2];
    task.width = shape[3];
    task.src_sample_stride = src.strides[0];
    task.dst_pixel_stride = rows_of(dst).stride;
    const std::int64_t channels = shape[1];
    for (std::int64_t first = 0; first < channels; first += kNormalizeChannels) {
      task.src = src.as<std::uint8_t>() + first * src.strides[1];
      task.dst = dst.data + first * static_cast<std::int64_t>(size_of(task.dtype));
      task.channels =
          static_cast<int>(std::min<std::int64_t>(channels - first, kNormalizeChannels));
      for (int c = 0; c < task.channels; ++c) {
        const auto channel = static_cast<std::size_t>(first + c);
        task.mean[c] = attributes_.mean[channel];
        task.deviation[c] = attributes_.deviation[channel];
      }
      launch_normalize(task, args.state, stream_of(args));
    }
  }

 private:
  NormalizeAttributes attributes_;
};

std::string check_normalize(const Problem& problem) {
  if (problem.input(0).shape.elements() / problem.input(0).shape[1] >= std::int64_t{1} << 31) {
    return "pixels are counted in 31 bits";
  }
  return refuse_doubles(problem);
}

std::unique_ptr<Kernel> make_normalize(const Problem& problem, std::span<const Layout>) {
  auto kernel =
      std::make_unique<Normalize>(std::get<NormalizeAttributes>(problem.node().attributes));
  kernel->input_layouts.assign(problem.inputs.size(), Layout::plain());
  kernel->output_layouts = {Layout::nhwc()};
  kernel->traits.slices = true;
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"normalize", match_one<OpKind::normalize>, check_normalize, make_normalize},
};

}  // namespace

std::span<const KernelRow> normalize_rows() { return kRows; }

}  // namespace ridgeline::cuda
