#include <algorithm>

#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/cast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

template <typename From, typename To>
HWY_INLINE void cast_as(const RowSpace& space, RowOperand src, RowOperand dst, Range range) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const From* from = src.row<const From>(row);
    To* to = dst.row<To>(row);
    for_lanes(hn::ScalableTag<float>(), space.width_of(row),
              [&](auto lanes, std::int64_t i)
                  HWY_ATTR { lanes.store(lanes.load(from + i), to + i); });
  }
}

// space.dtype is src's.
void cast_rows_of(const RowSpace& space, RowOperand src, RowOperand dst, DType to, Range range) {
  with_element(space.dtype, [&](auto from) HWY_ATTR {
    with_element(to, [&](auto target) HWY_ATTR {
      cast_as<decltype(from), decltype(target)>(space, src, dst, range);
    });
  });
}

// Filters [begin, end) of plain weights, each of `channels` by `taps`, become nhwc: channels
// innermost, as the matrix products want them.
void cast_filters(const float* src, BFloat16* dst, std::int64_t channels, std::int64_t taps,
                  Range range) {
  for (std::int64_t filter = range.begin; filter < range.end; ++filter) {
    const float* from = src + filter * channels * taps;
    BFloat16* to = dst + filter * channels * taps;
    for (std::int64_t tap = 0; tap < taps; ++tap, to += channels) {
      for (std::int64_t c = 0; c < channels; ++c) to[c] = bf16_of(from[c * taps + tap]);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(cast_rows_of);
HWY_EXPORT(cast_filters);

DType target_of(const Node& node) { return std::get<CastAttributes>(node.attributes).to; }

class SingleCast final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    const Tensor &src = args.inputs[0], &dst = args.outputs[0];
    const RowSpace space = element_space({&src, &dst});
    parallel_for(space.rows, space.grain(), [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(cast_rows_of)
      (space, space.operand(src), space.operand(dst), dst.spec.dtype, {begin, end});
    });
  }
};

// The weights of a network, all at once: threads share the filters of all evenly.
class WeightCasts final : public Kernel {
 public:
  struct Place {
    std::size_t src = 0, dst = 0;  // among inputs and outputs
    std::int64_t first = 0;        // of its filters, among those of all
    std::int64_t filters = 0, channels = 1, taps = 1;
  };

  WeightCasts(std::vector<Place> places, std::int64_t filters, std::int64_t elements)
      : places_(std::move(places)), filters_(filters), elements_(elements) {}

  void run(const KernelArgs& args) const override {
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 * filters_ / elements_);
    parallel_for(filters_, grain, [&](std::int64_t begin, std::int64_t end) {
      for (const Place& place : places_) {
        const Range range{std::max(begin, place.first) - place.first,
                          std::min(end, place.first + place.filters) - place.first};
        const Tensor& dst = args.outputs[place.dst];
        if (range.begin >= range.end || dst.data == nullptr) continue;
        const Tensor& src = args.inputs[place.src];
        if (place.taps > 1 && place.channels > 1) {
          HWY_DYNAMIC_DISPATCH(cast_filters)
          (src.as<const float>(), dst.as<BFloat16>(), place.channels, place.taps, range);
        } else {
          const std::int64_t width = place.channels * place.taps;
          HWY_DYNAMIC_DISPATCH(cast_rows_of)
          ({place.filters, width, width, false, DType::f32}, {src.data, width}, {dst.data, width},
           DType::bf16, range);
        }
      }
    });
  }

 private:
  std::vector<Place> places_;
  std::int64_t filters_, elements_;
};

// A parameter that becomes bf16.
bool narrows_parameter(const Graph& graph, const Node& node) {
  const Value& src = graph.value(node.inputs[0]);
  return src.role == Role::parameter && src.spec.dtype == DType::f32 && src.spec.shape.rank() > 0 &&
         target_of(node) == DType::bf16;
}

std::vector<NodeId> match_weight_casts(const Graph& graph, NodeId first) {
  std::vector<NodeId> nodes;
  for (NodeId id = first; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.kind != OpKind::cast || !narrows_parameter(graph, node)) break;
    nodes.push_back(id);
  }
  return nodes;
}

std::unique_ptr<Kernel> make_weight_casts(const Problem& problem, std::span<const Layout>) {
  std::vector<WeightCasts::Place> places;
  std::int64_t filters = 0, elements = 0;
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const Node& node = problem.node(i);
    const auto dst = problem.find_output(node.outputs[0]);
    if (!dst) continue;
    const Shape& shape = problem.output(*dst).shape;
    WeightCasts::Place place{problem.input_index(node.inputs[0]), *dst, filters, shape[0]};
    place.taps = shape.rank() == 4 ? shape[2] * shape[3] : 1;
    place.channels = shape.elements() / (shape[0] * place.taps);
    filters += place.filters;
    elements += shape.elements();
    places.push_back(place);
  }
  auto kernel = std::make_unique<WeightCasts>(std::move(places), filters, elements);
  set_layouts(*kernel, problem, Layout::nhwc());
  for (Layout& layout : kernel->input_layouts) layout = Layout::plain();
  return kernel;
}

std::unique_ptr<Kernel> make_cast(const Problem& problem, std::span<const Layout> layouts) {
  auto kernel = std::make_unique<SingleCast>();
  set_layouts(*kernel, problem, common_layout(problem, layouts));
  kernel->traits = {.slices = true};
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"weight_casts", match_weight_casts, refuse_other_than_floats, make_weight_casts},
    {"cast", match_one<OpKind::cast>, refuse_other_than_floats, make_cast},
};

}  // namespace

std::span<const KernelRow> cast_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
