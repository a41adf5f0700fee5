#include "backends/nccl/backend.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <vector>

#include "backends/cuda/common.h"
#include "backends/nccl/communicator.h"
#include "backends/nccl/exchange_kernels.h"
#include "backends/nccl/nccl_version.h"
#include "base/error.h"
#include "devices/cuda_check.h"
#include "devices/device.h"

namespace ridgeline {
namespace nccl {
namespace {

using cuda::stream_of;

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

std::size_t elements_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.shape().elements());
}

// Where the values of a bucket come together to travel, and where they arrive. Narrow ones are
// added in f32: each rank gets its part of them from all, adds in the order of the ranks, and sends
// the rounded sums back.
class Stretch {
 public:
  Stretch(std::size_t elements, DType wire, int ranks)
      : elements_(elements), wire_(wire), ranks_(static_cast<std::size_t>(ranks)) {}

  [[nodiscard]] std::size_t workspace() const {
    return narrow() ? 2 * aligned(part() * ranks_ * size_of(wire_))
                    : aligned(elements_ * sizeof(float));
  }
  // Sums what was packed at the workspace's beginning; gives where the sums lie.
  [[nodiscard]] const std::byte* sum(Communicator& ranks, std::byte* workspace,
                                     Stream stream) const {
    if (!narrow()) {
      ranks.all_reduce(std::span(reinterpret_cast<float*>(workspace), elements_), stream);
      return workspace;
    }
    const std::size_t all = part() * ranks_ * size_of(wire_), used = elements_ * size_of(wire_);
    std::byte* const got = workspace + aligned(all);
    if (all > used) {
      cuda::check(cudaMemsetAsync(workspace + used, 0, all - used, stream), "a fill");
    }
    ranks.all_to_all(workspace, got, part() * size_of(wire_), stream);
    launch_sum_parts(got, static_cast<int>(ranks_), static_cast<std::int64_t>(part()), workspace,
                     wire_, stream);
    ranks.all_gather(workspace, got, part() * size_of(wire_), stream);
    return got;
  }
  [[nodiscard]] DType wire() const { return wire_; }

 private:
  [[nodiscard]] bool narrow() const { return wire_ != DType::f32; }
  [[nodiscard]] std::size_t part() const { return (elements_ + ranks_ - 1) / ranks_; }

  std::size_t elements_;
  DType wire_;
  std::size_t ranks_;
};

std::size_t elements_of(const Problem& problem) {
  std::size_t elements = 0;
  for (const ValueId input : problem.node().inputs) {
    elements += static_cast<std::size_t>(problem.graph->value(input).spec.shape.elements());
  }
  return elements;
}

// Sums a bucket. Values of f32 that travel as such are summed where they lie, those that follow
// each other in memory together; all others are brought to one stretch first.
class AllReduce final : public Kernel {
 public:
  explicit AllReduce(const Problem& problem)
      : ranks_(*joined_ranks()),
        attributes_(std::get<AllReduceAttributes>(problem.node().attributes)),
        stretch_(elements_of(problem), attributes_.wire, ranks_.size()) {
    in_place_ =
        attributes_.wire == DType::f32 && attributes_.weight == 1.0 && attributes_.scale == 1.0;
    for (const ValueId input : problem.node().inputs) {
      arguments_.push_back(problem.input_index(input));
      in_place_ = in_place_ && problem.graph->value(input).spec.dtype == DType::f32;
    }
    if (!in_place_) workspace_bytes = stretch_.workspace();
    implementation = attributes_.wire == DType::f32
                         ? std::string("all_reduce")
                         : fmt::format("all_reduce {}", name_of(attributes_.wire));
  }

  void run(const KernelArgs& args) const override {
    for (const Tensor& output : args.outputs) {
      ensure(output.data != nullptr, "a sum over ranks that is never read");
    }
    Communicator& ranks = communicator(ranks_);
    if (in_place_) {
      reduce_in_place(args, ranks);
    } else {
      reduce_together(args, ranks);
    }
  }

 private:
  void reduce_in_place(const KernelArgs& args, Communicator& ranks) const {
    const Stream stream = stream_of(args);
    for (std::size_t i = 0; i < args.outputs.size(); ++i) {
      const Tensor &src = args.inputs[arguments_[i]], &dst = args.outputs[i];
      if (src.data == dst.data) continue;
      cuda::check(cudaMemcpyAsync(dst.data, src.data, static_cast<std::size_t>(src.spec.bytes()),
                                  cudaMemcpyDeviceToDevice, stream),
                  "a copy");
    }
    ranks.begin_group();
    for (std::size_t first = 0; first < args.outputs.size();) {
      const Tensor& begin = args.outputs[first];
      auto bytes = static_cast<std::size_t>(begin.spec.bytes());
      for (++first; first < args.outputs.size(); ++first) {
        const Tensor& next = args.outputs[first];
        if (next.data != begin.data + aligned(bytes)) break;
        bytes = aligned(bytes) + static_cast<std::size_t>(next.spec.bytes());
      }
      ranks.all_reduce(std::span(begin.as<float>(), bytes / sizeof(float)), stream);
    }
    ranks.end_group();
  }

  void reduce_together(const KernelArgs& args, Communicator& ranks) const {
    const Stream stream = stream_of(args);
    const auto factor = static_cast<float>(attributes_.weight);
    for_batches(args, true, [&](const Travelling* tensors, int count) {
      launch_pack(tensors, count, args.workspace, stretch_.wire(), factor, stream);
    });
    const std::byte* const sums = stretch_.sum(ranks, args.workspace, stream);
    const auto scale = static_cast<float>(attributes_.scale);
    for_batches(args, false, [&](const Travelling* tensors, int count) {
      launch_unpack(tensors, count, sums, stretch_.wire(), scale, stream);
    });
  }

  // Calls body(tensors, count) for the inputs or the outputs, as many at a time as a launch takes.
  template <typename Body>
  void for_batches(const KernelArgs& args, bool inputs, Body body) const {
    std::array<Travelling, kTravelling> tensors;
    int count = 0;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const Tensor& tensor = inputs ? args.inputs[arguments_[i]] : args.outputs[i];
      const auto elements = static_cast<std::int64_t>(elements_of(tensor));
      tensors[static_cast<std::size_t>(count++)] = {tensor.data, elements, first,
                                                    tensor.spec.dtype};
      first += elements;
      if (count == kTravelling || i + 1 == arguments_.size()) {
        body(tensors.data(), count);
        count = 0;
      }
    }
  }

  Ranks& ranks_;
  AllReduceAttributes attributes_;
  Stretch stretch_;
  std::vector<std::size_t> arguments_;
  bool in_place_ = true;
};

// Every rank gets the statistics of all and merges them in the same order.
class MergeStatistics final : public Kernel {
 public:
  explicit MergeStatistics(const Problem& problem)
      : ranks_(*joined_ranks()),
        weight_(std::get<MergeStatisticsAttributes>(problem.node().attributes).weight),
        channels_(static_cast<int>(problem.input(0).shape[0])) {
    workspace_bytes = (static_cast<std::size_t>(ranks_.size()) + 1) * aligned(record_bytes());
    implementation = "all_gather";
  }

  void run(const KernelArgs& args) const override {
    const Stream stream = stream_of(args);
    std::byte* const all = args.workspace + aligned(record_bytes());
    launch_write_record(weight_, args.inputs[0].as<float>(), args.inputs[1].as<float>(), channels_,
                        reinterpret_cast<double*>(args.workspace), stream);
    communicator(ranks_).all_gather(args.workspace, all, record_bytes(), stream);
    launch_merge_records(reinterpret_cast<const double*>(all), ranks_.size(), channels_,
                         args.outputs[0].as<float>(), args.outputs[1].as<float>(), stream);
  }

 private:
  [[nodiscard]] std::size_t record_bytes() const {
    return (1 + 2 * static_cast<std::size_t>(channels_)) * sizeof(double);
  }

  Ranks& ranks_;
  double weight_;
  int channels_;
};

int asked_ranks(const Problem& problem) {
  const Attributes& attributes = problem.node().attributes;
  if (const auto* reduce = std::get_if<AllReduceAttributes>(&attributes)) return reduce->ranks;
  return std::get<MergeStatisticsAttributes>(attributes).ranks;
}

std::string check_exchange(const Problem& problem) {
  const Ranks* ranks = joined_ranks();
  const int there = ranks == nullptr ? 1 : ranks->size();
  if (ranks == nullptr || there != asked_ranks(problem)) {
    return fmt::format("{} ranks asked for, {} joined", asked_ranks(problem), there);
  }
  if (std::string problem_there = unavailable(); !problem_there.empty()) return problem_there;
  return cuda::refuse_doubles(problem);
}

void set_traits(Kernel& kernel) {
  kernel.traits.capturable = can_be_recorded();
  kernel.traits.beside = true;
}

// Sums look at no position: any layout will do, as long as it is dense and the same on all ranks.
std::unique_ptr<Kernel> make_all_reduce(const Problem& problem, std::span<const Layout> layouts) {
  auto kernel = std::make_unique<AllReduce>(problem);
  kernel->input_layouts.assign(layouts.begin(), layouts.end());
  for (const ValueId input : problem.node().inputs) {
    kernel->output_layouts.push_back(layouts[problem.input_index(input)]);
  }
  set_traits(*kernel);
  return kernel;
}

std::unique_ptr<Kernel> make_merge(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<MergeStatistics>(problem);
  set_layouts(*kernel, problem, Layout::plain());
  set_traits(*kernel);
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"all_reduce", match_one<OpKind::all_reduce>, check_exchange, make_all_reduce},
    {"merge_statistics", match_one<OpKind::merge_statistics>, check_exchange, make_merge},
};

}  // namespace

std::string unavailable() {
  if (std::string reason = cuda_unavailable(); !reason.empty()) return reason;
  return library_problem();
}

std::string version_text() {
  if (!library_problem().empty()) return "no NCCL";
  return "NCCL " + text_of_version(library_version());
}

bool can_be_recorded() { return library_problem().empty() && records_exchanges(library_version()); }

void watch_over(Device& device) {
  device.watch([](double waited_seconds) {
    if (Communicator* joined = made_communicator()) joined->look(waited_seconds);
  });
}

void all_reduce(Ranks& ranks, std::span<float> values, void* queue) {
  communicator(ranks).all_reduce(values, static_cast<Stream>(queue));
}

}  // namespace nccl

const Backend nccl_backend = {
    .name = "nccl",
    .device = "cuda",
    .unavailable = nccl::unavailable,
    .version = nccl::version_text,
    .rows = []() -> std::span<const KernelRow> { return nccl::kRows; },
    .make_reorder = [](const TensorSpec&, const Layout&,
                       const Layout&) { return std::unique_ptr<Kernel>(); },
    .usual_share = 0.0};

}  // namespace ridgeline
