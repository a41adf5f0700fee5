#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <vector>

#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/normalize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/lanes-inl.h"

#ifndef RIDGELINE_NATIVE_NORMALIZE_TYPES
#define RIDGELINE_NATIVE_NORMALIZE_TYPES
namespace ridgeline::native {
namespace {

// A pixel has 256 values: a table gives each exactly rounded. Multiplying by a rounded scale would
// be off in the last bit, which is enough to tip a tie in a later max pool or ReLU.
using Channel = std::array<float, 256>;

// A number of the table, which is one of dst's type.
void store_exact(float number, float* to) { *to = number; }
void store_exact(float number, BFloat16* to) {
  to->bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16);
}

// Neighbouring pixels of one sample: channel c's lie at src + c * src_channel_stride, and all
// channels of a pixel together in dst.
struct PixelRun {
  const std::uint8_t* src = nullptr;
  std::int64_t src_channel_stride = 0;
  std::byte* dst = nullptr;
  DType dtype = DType::f32;  // of dst
  std::int64_t dst_pixel_stride = 0;
  std::int64_t pixels = 0;
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

template <class D, class Lanes>
HWY_INLINE hn::Vec<D> normalized(D d, Lanes lanes, const std::uint8_t* src,
                                 const Channel& channel) {
  const hn::RebindToSigned<D> integers;
  return hn::GatherIndex(d, channel.data(), hn::PromoteTo(integers, lanes.load(src)));
}

template <typename T>
HWY_INLINE void normalize_as(const PixelRun& run, std::span<const Channel> channels) {
  T* const dst = reinterpret_cast<T*>(run.dst);
  const hn::ScalableTag<float> d;
  const auto count = static_cast<std::int64_t>(channels.size());
  std::int64_t done = 0;
  if (count == 1 && run.dst_pixel_stride == 1) {
    for_lanes(d, run.pixels, [&](auto lanes, std::int64_t i) HWY_ATTR {
      lanes.store(normalized(d, lanes, run.src + i, channels[0]), dst + i);
    });
    return;
  }
  if (count == 3 && run.dst_pixel_stride == 3) {
    const FullLanes<hn::ScalableTag<float>> lanes;
    const std::uint8_t* const red = run.src;
    const std::uint8_t* const green = red + run.src_channel_stride;
    const std::uint8_t* const blue = green + run.src_channel_stride;
    for (; done + lanes_of(d) <= run.pixels; done += lanes_of(d)) {
      const auto r = normalized(d, lanes, red + done, channels[0]);
      const auto g = normalized(d, lanes, green + done, channels[1]);
      const auto b = normalized(d, lanes, blue + done, channels[2]);
      if constexpr (std::same_as<T, float>) {
        hn::StoreInterleaved3(r, g, b, d, dst + 3 * done);
      } else {
        const hn::Rebind<std::uint16_t, decltype(d)> bits;
        hn::StoreInterleaved3(narrowed(d, r), narrowed(d, g), narrowed(d, b), bits,
                              reinterpret_cast<std::uint16_t*>(dst) + 3 * done);
      }
    }
  }
  for (std::int64_t i = done; i < run.pixels; ++i) {
    for (std::int64_t c = 0; c < count; ++c) {
      store_exact(channels[static_cast<std::size_t>(c)][run.src[c * run.src_channel_stride + i]],
                  dst + i * run.dst_pixel_stride + c);
    }
  }
}

void normalize_run(const PixelRun& run, std::span<const Channel> channels) {
  with_element(run.dtype,
               [&](auto element) HWY_ATTR { normalize_as<decltype(element)>(run, channels); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(normalize_run);

class Normalize final : public Kernel {
 public:
  explicit Normalize(const NormalizeAttributes& attributes) : flip_(attributes.flip) {
    for (std::size_t c = 0; c < attributes.mean.size(); ++c) {
      const double mean = attributes.mean[c], deviation = attributes.deviation[c];
      Channel& channel = channels_.emplace_back();
      for (std::size_t pixel = 0; pixel < 256; ++pixel) {
        const double exact = (static_cast<double>(pixel) / 255.0 - mean) / deviation;
        channel[pixel] = attributes.dtype == DType::bf16
                             ? static_cast<float>(widened(narrowed<BFloat16>(exact)))
                             : static_cast<float>(exact);
      }
    }
  }

  void run(const KernelArgs& args) const override {
    const Tensor& dst = args.outputs[0];
    if (dst.data == nullptr) return;
    const auto samples = dst.shape()[0];
    constexpr std::int64_t kPixelsWorthAThread = 65536;
    const std::int64_t grain =
        1 + kPixelsWorthAThread / std::max<std::int64_t>(1, dst.shape().elements() / samples);
    parallel_for(samples, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        const bool mirrored = flip_ && flips(args.state->seed, args.state->epoch,
                                             args.inputs[1].as<std::int32_t>()[n]);
        if (mirrored && dst.spec.dtype == DType::bf16) {
          mirror<BFloat16>(args.inputs[0], dst, n);
        } else if (mirrored) {
          mirror<float>(args.inputs[0], dst, n);
        } else {
          copy(args.inputs[0], dst, n);
        }
      }
    });
  }

 private:
  void copy(const Tensor& pixels, const Tensor& dst, std::int64_t n) const {
    const std::int64_t height = dst.shape()[2], width = dst.shape()[3];
    // Rows that follow each other on both sides make one long run.
    const bool whole = dst.strides[2] == width * dst.strides[3] && pixels.strides[2] == width;
    for (std::int64_t h = 0; h < (whole ? 1 : height); ++h) {
      HWY_DYNAMIC_DISPATCH(normalize_run)
      ({.src = pixels.as<std::uint8_t>() + n * pixels.strides[0] + h * pixels.strides[2],
        .src_channel_stride = pixels.strides[1],
        .dst = dst.data + (n * dst.strides[0] + h * dst.strides[2]) *
                              static_cast<std::int64_t>(size_of(dst.spec.dtype)),
        .dtype = dst.spec.dtype,
        .dst_pixel_stride = dst.strides[3],
        .pixels = whole ? height * width : width},
       channels_);
    }
  }

  template <typename T>
  void mirror(const Tensor& pixels, const Tensor& dst, std::int64_t n) const {
    const std::int64_t height = dst.shape()[2], width = dst.shape()[3];
    for (std::int64_t h = 0; h < height; ++h) {
      const std::uint8_t* const src =
          pixels.as<std::uint8_t>() + n * pixels.strides[0] + h * pixels.strides[2];
      T* const row = dst.as<T>() + n * dst.strides[0] + h * dst.strides[2];
      for (std::int64_t w = 0; w < width; ++w) {
        for (std::size_t c = 0; c < channels_.size(); ++c) {
          const auto channel = static_cast<std::int64_t>(c);
          store_exact(channels_[c][src[channel * pixels.strides[1] + width - 1 - w]],
                      row + w * dst.strides[3] + channel);
        }
      }
    }
  }

  bool flip_;
  std::vector<Channel> channels_;
};

std::string check_normalize(const Problem& problem) { return refuse_other_than_floats(problem); }

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

}  // namespace ridgeline::native
#endif
