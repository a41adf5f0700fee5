#include "backends/mpi/backend.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "ranks/ranks.h"

namespace ridgeline {
namespace {

// Calls body(float*, count) or body(double*, count).
template <typename Body>
void with_elements(const Tensor& tensor, Body&& body) {
  const auto count = static_cast<std::size_t>(tensor.shape().elements());
  if (tensor.spec.dtype == DType::f64) {
    body(std::span(tensor.as<double>(), count));
  } else {
    body(std::span(tensor.as<float>(), count));
  }
}

bool is_narrow(const Tensor& tensor) { return tensor.spec.dtype == DType::bf16; }

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Sums in f32 what travels in 16 bits: each rank gets its part of the values from all, adds them in
// the order of the ranks and sends the rounded sums back, so that all have the same bits.
class NarrowSum {
 public:
  // Of at most so many values.
  static std::size_t workspace(std::size_t elements, const Ranks& ranks) {
    return 2 * aligned(part_of(elements, ranks) * static_cast<std::size_t>(ranks.size()) *
                       sizeof(std::uint16_t));
  }

  NarrowSum(Ranks& ranks, std::byte* workspace) : ranks_(ranks), workspace_(workspace) {}

  template <typename Value>
  void sum(std::span<Value> values, DType wire) {
    if (wire == DType::bf16) {
      sum_as<BFloat16>(values, bf16_of);
    } else {
      sum_as<Float16>(values, f16_of);
    }
  }

 private:
  static std::size_t part_of(std::size_t elements, const Ranks& ranks) {
    const auto count = static_cast<std::size_t>(ranks.size());
    return (elements + count - 1) / count;
  }

  template <typename Wire, typename Value, typename Narrow>
  void sum_as(std::span<Value> values, Narrow narrow) {
    const auto count = static_cast<std::size_t>(ranks_.size());
    const std::size_t part = part_of(values.size(), ranks_);
    const std::span sent(reinterpret_cast<Wire*>(workspace_), part * count);
    const std::span got(reinterpret_cast<Wire*>(workspace_ + aligned(sent.size() * sizeof(Wire))),
                        part * count);
    for (std::size_t i = 0; i < values.size(); ++i) sent[i] = narrow(float_of(values[i]));
    std::fill(sent.begin() + static_cast<std::ptrdiff_t>(values.size()), sent.end(), Wire{});
    ranks_.all_to_all(std::as_bytes(sent), std::as_writable_bytes(got));
    for (std::size_t i = 0; i < part; ++i) {
      float total = 0.0F;
      for (std::size_t rank = 0; rank < count; ++rank) total += float_of(got[rank * part + i]);
      sent[i] = narrow(total);
    }
    ranks_.all_gather(std::as_bytes(sent.first(part)), std::as_writable_bytes(got));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<Value, float>) {
        values[i] = float_of(got[i]);
      } else {
        values[i] = bf16_of(float_of(got[i]));
      }
    }
  }

  Ranks& ranks_;
  std::byte* workspace_;
};

// Sums a bucket. Tensors that follow each other in memory, as gradients do, travel as one; what
// lies between them to fill cache lines travels along.
class AllReduce final : public Kernel {
 public:
  explicit AllReduce(const Problem& problem)
      : ranks_(*joined_ranks()),
        attributes_(std::get<AllReduceAttributes>(problem.node().attributes)) {
    for (const ValueId input : problem.node().inputs) {
      arguments_.push_back(problem.input_index(input));
      const TensorSpec& spec = problem.graph->value(input).spec;
      const auto elements = static_cast<std::size_t>(spec.shape.elements());
      if (size_of(spec.dtype) < sizeof(float)) widest_ = std::max(widest_, elements);
      bucket_bytes_ += aligned(elements * size_of(spec.dtype));
    }
    const bool narrow = attributes_.wire != DType::f32;
    workspace_bytes = narrow ? NarrowSum::workspace(bucket_bytes_ / sizeof(float) + widest_, ranks_)
                             : aligned(widest_ * sizeof(float));
    implementation = narrow ? fmt::format("all_reduce {}", name_of(attributes_.wire))
                            : std::string("all_reduce");
  }

  void run(const KernelArgs& args) const override {
    for (std::size_t i = 0; i < args.outputs.size(); ++i) begin(args, i);
    for (std::size_t first = 0; first < args.outputs.size();) first = reduce_from(args, first);
    if (attributes_.scale == 1.0) return;
    for (const Tensor& output : args.outputs) multiply(output, attributes_.scale);
  }

 private:
  static void multiply(const Tensor& tensor, double factor) {
    if (tensor.data == nullptr) return;
    ensure(!is_narrow(tensor), "sums of 16 bits are not scaled");
    with_elements(tensor, [&](auto values) {
      using T = typename decltype(values)::value_type;
      for (T& value : values) value = static_cast<T>(static_cast<double>(value) * factor);
    });
  }

  // Results begin as this rank's part of the sum.
  void begin(const KernelArgs& args, std::size_t i) const {
    const Tensor &src = args.inputs[arguments_[i]], &dst = args.outputs[i];
    ensure(dst.data != nullptr, "a sum over ranks that is never read");
    if (src.data != dst.data) {
      std::memcpy(dst.data, src.data, static_cast<std::size_t>(src.spec.bytes()));
    }
    if (attributes_.weight != 1.0) multiply(dst, attributes_.weight);
  }

  // Sums the outputs from `first` on that follow each other; gives the first one that does not.
  std::size_t reduce_from(const KernelArgs& args, std::size_t first) const {
    const Tensor& begin = args.outputs[first];
    if (is_narrow(begin)) {
      reduce_narrow(begin, args.workspace);
      return first + 1;
    }
    auto bytes = static_cast<std::size_t>(begin.spec.bytes());
    std::size_t next = first + 1;
    for (; next < args.outputs.size(); ++next) {
      const Tensor& tensor = args.outputs[next];
      if (tensor.spec.dtype != begin.spec.dtype || tensor.data != begin.data + aligned(bytes)) {
        break;
      }
      bytes = aligned(bytes) + static_cast<std::size_t>(tensor.spec.bytes());
    }
    if (begin.spec.dtype == DType::f32 && attributes_.wire != DType::f32) {
      NarrowSum(ranks_, args.workspace)
          .sum(std::span(begin.as<float>(), bytes / sizeof(float)), attributes_.wire);
    } else if (begin.spec.dtype == DType::f64) {
      ranks_.all_reduce(std::span(begin.as<double>(), bytes / sizeof(double)));
    } else {
      ranks_.all_reduce(std::span(begin.as<float>(), bytes / sizeof(float)));
    }
    return next;
  }

  // Sums of 16-bit values are made in f32.
  void reduce_narrow(const Tensor& tensor, std::byte* workspace) const {
    const std::span wide(reinterpret_cast<float*>(workspace),
                         static_cast<std::size_t>(tensor.shape().elements()));
    auto* const values = tensor.as<BFloat16>();
    if (attributes_.wire != DType::f32) {
      NarrowSum(ranks_, workspace).sum(std::span(values, wide.size()), attributes_.wire);
      return;
    }
    for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = float_of(values[i]);
    ranks_.all_reduce(wide);
    for (std::size_t i = 0; i < wide.size(); ++i) values[i] = bf16_of(wide[i]);
  }

  Ranks& ranks_;
  AllReduceAttributes attributes_;
  std::vector<std::size_t> arguments_;
  std::size_t widest_ = 0;  // elements of the largest 16-bit tensor
  std::size_t bucket_bytes_ = 0;
};

// Every rank gets the statistics of all and merges them in the same order.
class MergeStatistics final : public Kernel {
 public:
  explicit MergeStatistics(const Problem& problem)
      : ranks_(*joined_ranks()),
        weight_(std::get<MergeStatisticsAttributes>(problem.node().attributes).weight),
        channels_(static_cast<std::size_t>(problem.input(0).shape[0])) {
    workspace_bytes = (static_cast<std::size_t>(ranks_.size()) + 1) * record() * sizeof(double);
    implementation = "all_gather";
  }

  void run(const KernelArgs& args) const override {
    auto* const own = reinterpret_cast<double*>(args.workspace);
    auto* const all = own + record();
    own[0] = weight_;
    with_elements(args.inputs[0],
                  [&](auto values) { std::copy(values.begin(), values.end(), own + 1); });
    with_elements(args.inputs[1], [&](auto values) {
      std::copy(values.begin(), values.end(), own + 1 + channels_);
    });
    const auto count = static_cast<std::size_t>(ranks_.size());
    ranks_.all_gather(std::as_bytes(std::span(own, record())),
                      std::as_writable_bytes(std::span(all, count * record())));
    for (std::size_t c = 0; c < channels_; ++c) {
      const MeanVariance merged = merged_statistics(ranks_.size(), [&](int rank) {
        const double* of = all + static_cast<std::size_t>(rank) * record();
        return WeightedStatistics{of[0], of[1 + c], of[1 + channels_ + c]};
      });
      write(args.outputs[0], c, merged.mean);
      write(args.outputs[1], c, merged.variance);
    }
  }

 private:
  [[nodiscard]] std::size_t record() const { return 1 + 2 * channels_; }

  static void write(const Tensor& tensor, std::size_t at, double value) {
    if (tensor.data == nullptr) return;
    with_elements(tensor, [&](auto values) {
      values[at] = static_cast<typename decltype(values)::value_type>(value);
    });
  }

  Ranks& ranks_;
  double weight_;
  std::size_t channels_;
};

int asked_ranks(const Problem& problem) {
  const Attributes& attributes = problem.node().attributes;
  if (const auto* reduce = std::get_if<AllReduceAttributes>(&attributes)) return reduce->ranks;
  return std::get<MergeStatisticsAttributes>(attributes).ranks;
}

std::string check(const Problem& problem) {
  const Ranks* ranks = joined_ranks();
  const int there = ranks == nullptr ? 1 : ranks->size();
  if (ranks == nullptr || there != asked_ranks(problem)) {
    return fmt::format("{} ranks asked for, {} joined", asked_ranks(problem), there);
  }
  for (const ValueId id : problem.inputs) {
    if (problem.graph->value(id).spec.dtype == DType::f16) return "mpi sums no values of fp16";
  }
  return {};
}

// Sums look at no position: any layout will do, as long as it is dense and the same on all ranks.
std::unique_ptr<Kernel> make_all_reduce(const Problem& problem, std::span<const Layout> layouts) {
  auto kernel = std::make_unique<AllReduce>(problem);
  kernel->input_layouts.assign(layouts.begin(), layouts.end());
  for (const ValueId input : problem.node().inputs) {
    kernel->output_layouts.push_back(layouts[problem.input_index(input)]);
  }
  kernel->traits.capturable = false;
  kernel->traits.beside = true;
  return kernel;
}

std::unique_ptr<Kernel> make_merge(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<MergeStatistics>(problem);
  set_layouts(*kernel, problem, Layout::plain());
  kernel->traits.capturable = false;
  kernel->traits.beside = true;
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"all_reduce", match_one<OpKind::all_reduce>, check, make_all_reduce},
    {"merge_statistics", match_one<OpKind::merge_statistics>, check, make_merge},
};

}  // namespace

const Backend mpi_backend = {
    .name = "mpi",
    .device = "cpu",
    .unavailable = [] { return std::string(); },
    .version =
        [] {
          const Ranks* ranks = joined_ranks();
          return ranks != nullptr ? ranks->transport() : std::string("no ranks");
        },
    .rows = []() -> std::span<const KernelRow> { return kRows; },
    .make_reorder = [](const TensorSpec&, const Layout&,
                       const Layout&) { return std::unique_ptr<Kernel>(); },
    .usual_share = 0.0};

}  // namespace ridgeline
