#pragma once

// Starts the kernels of a plan.

#include "backends/opencl/conv/conv_plan.h"
#include "backends/opencl/launch.h"

namespace ridgeline::opencl::conv {

// What happens to a sum before it is stored.
struct Epilogue {
  const void* bias = nullptr;  // one number for each channel of dst
  std::int32_t activation = -1;
  float slope = 0.0F;
};

// `src` and `dst` are diff_dst and diff_src in backward data.
void run_gather(const GatherPlan& plan, const Rows& src, const void* weights, const Rows& dst,
                const Epilogue& epilogue, std::byte* workspace, Queue& queue);
void run_weights(const WeightsPlan& plan, const Rows& src, const Rows& diff_dst,
                 const void* diff_weights, std::byte* workspace, Queue& queue);

// One channel of src to a group.
struct DepthwisePlan {
  std::vector<Gather> classes;  // forward has one
  Weights weights;
  std::int32_t multiplier = 1;  // channels of dst to a group
  std::size_t workspace_bytes = 0;
};
[[nodiscard]] DepthwisePlan plan_depthwise(const Geometry& geometry);
[[nodiscard]] DepthwisePlan plan_depthwise_data(const Geometry& geometry);
[[nodiscard]] DepthwisePlan plan_depthwise_weights(const Geometry& geometry, std::int64_t units);

void run_depthwise(const DepthwisePlan& plan, const Rows& src, const void* weights, const Rows& dst,
                   const Epilogue& epilogue, std::byte* workspace, Queue& queue);
void run_depthwise_data(const DepthwisePlan& plan, const Rows& diff_dst, const void* weights,
                        const Rows& diff_src, std::byte* workspace, Queue& queue);
void run_depthwise_weights(const DepthwisePlan& plan, const Rows& src, const Rows& diff_dst,
                           const void* diff_weights, std::byte* workspace, Queue& queue);

// Few pixels and many channels, in registers.
struct FewPlan {
  Gather forward;                     // without strides and epilogue
  std::int32_t pixels = 0, seen = 0;  // of dst; numbers that a pixel of dst sees of src
  std::int32_t pitch = 0;             // pixels, rounded up
};
[[nodiscard]] bool has_few_pixels(const Geometry& geometry);
// REQUIRES: has_few_pixels.
[[nodiscard]] FewPlan plan_few(const Geometry& geometry);
[[nodiscard]] std::size_t few_forward_bytes(const FewPlan& plan);  // of workspace
[[nodiscard]] std::size_t few_data_bytes(const FewPlan& plan);
[[nodiscard]] std::size_t few_weights_bytes(const FewPlan& plan);
void run_few_forward(const FewPlan& plan, const Rows& src, const void* weights, const Rows& dst,
                     const Epilogue& epilogue, std::byte* workspace, Queue& queue);
void run_few_data(const FewPlan& plan, const Rows& diff_dst, const void* weights,
                  const Rows& diff_src, std::byte* workspace, Queue& queue);
void run_few_weights(const FewPlan& plan, const Rows& src, const Rows& diff_dst,
                     const void* diff_weights, std::byte* workspace, Queue& queue);

}  // namespace ridgeline::opencl::conv
