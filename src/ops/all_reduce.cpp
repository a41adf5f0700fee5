#include "ops/all_reduce.h"

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

const AllReduceAttributes& reduce_of(const Attributes& attributes) {
  return std::get<AllReduceAttributes>(attributes);
}
const MergeStatisticsAttributes& merge_of(const Attributes& attributes) {
  return std::get<MergeStatisticsAttributes>(attributes);
}

void check_ranks(std::string_view op, int ranks) {
  if (ranks < 1) bad_input("{}: {} ranks; there must be at least 1", op, ranks);
}

std::vector<OutputSpec> reduce_outputs(const Attributes& attributes,
                                       std::span<const TensorSpec> inputs) {
  const AllReduceAttributes& a = reduce_of(attributes);
  check_ranks("all_reduce", a.ranks);
  std::vector<OutputSpec> made;
  for (const TensorSpec& input : inputs) {
    if (!is_float(input.dtype)) {
      bad_input("all_reduce: {} {} are no floats", input.shape.text(), name_of(input.dtype));
    }
    made.push_back({input, a.in_place ? static_cast<int>(made.size()) : -1});
  }
  return made;
}

std::vector<OutputSpec> merge_outputs(const Attributes& attributes,
                                      std::span<const TensorSpec> inputs) {
  check_ranks("merge_statistics", merge_of(attributes).ranks);
  if (inputs[0].shape.rank() != 1 || inputs[0] != inputs[1]) {
    bad_input("merge_statistics: mean {} and variance {} must be (C) of one type",
              inputs[0].shape.text(), inputs[1].shape.text());
  }
  return {{inputs[0]}, {inputs[1]}};
}

// One addition for each element of each other rank, shared by all ranks.
Cost reduce_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                 std::span<const OutputSpec>) {
  const std::int64_t ranks = reduce_of(attributes).ranks;
  std::int64_t elements = 0;
  for (const TensorSpec& input : inputs) elements += input.shape.elements();
  return {.macs = 0, .flops = elements * (ranks - 1) / ranks};
}

// Of each rank: a product and a sum of the mean; difference, square, sum, product and sum of the
// variance.
Cost merge_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), std::int64_t{7} * merge_of(attributes).ranks);
}

void check_alone(std::string_view op, int ranks) {
  ensure(ranks == 1, "the loops of {} know one rank, not {}", op, ranks);
}

// Of a rank that is alone.
void reduce_reference(const OpCall& call) {
  const AllReduceAttributes& a = reduce_of(call.attributes);
  check_alone("all_reduce", a.ranks);
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.outputs[i].data == nullptr) continue;
    with_float_type(call.inputs[i].spec.dtype, [&](auto type) {
      using T = decltype(type);
      const Elements<T> src(call.inputs[i]), dst(call.outputs[i]);
      for (std::int64_t e = 0; e < call.inputs[i].shape().elements(); ++e) {
        dst.flat(e) = static_cast<T>(double{src.flat(e)} * a.weight * a.scale);
      }
    });
  }
}

void merge_reference(const OpCall& call) {
  const MergeStatisticsAttributes& a = merge_of(call.attributes);
  check_alone("merge_statistics", a.ranks);
  with_float_type(call.inputs[0].spec.dtype, [&](auto type) {
    using T = decltype(type);
    const Elements<T> mean(call.inputs[0]), variance(call.inputs[1]);
    const Elements<T> new_mean(call.outputs[0]), new_variance(call.outputs[1]);
    for (std::int64_t c = 0; c < call.inputs[0].shape()[0]; ++c) {
      const MeanVariance merged = merged_statistics(1, [&](int) {
        return WeightedStatistics{a.weight, double{mean(c)}, double{variance(c)}};
      });
      new_mean(c) = static_cast<T>(merged.mean);
      new_variance(c) = static_cast<T>(merged.variance);
    }
  });
}

std::string reduce_text(const Attributes& attributes) {
  const AllReduceAttributes& a = reduce_of(attributes);
  return fmt::format("ranks{} weight{} scale{}", a.ranks, a.weight, a.scale);
}

std::string merge_text(const Attributes& attributes) {
  return fmt::format("ranks{} weight{}", merge_of(attributes).ranks, merge_of(attributes).weight);
}

}  // namespace

const OpDef all_reduce_op = {.name = "all_reduce",
                             .outputs = reduce_outputs,
                             .work = reduce_work,
                             .gradient = nullptr,
                             .reference = reduce_reference,
                             .text = reduce_text};

const OpDef merge_statistics_op = {.name = "merge_statistics",
                                   .outputs = merge_outputs,
                                   .work = merge_work,
                                   .gradient = nullptr,
                                   .reference = merge_reference,
                                   .text = merge_text,
                                   .wide_inputs = 0b11};

}  // namespace ridgeline
