// Four kernels a batch, each over all its images: blocks to planes, planes to pixels, pixels
// resized along rows, and along columns into the batch.

#include <cuda_runtime_api.h>

#include "devices/cuda_images.h"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksAtOnce = kThreads / kBlockSide;
constexpr int kGroupsOfImage = 8;

__device__ const BlockChannel& channel_of(const ImageJob& job, int block) {
  int c = 0;
  while (c + 1 < job.channels && block >= job.channel[c + 1].first_block) ++c;
  return job.channel[c];
}

// Eight threads a block: each takes a column, then a row.
__global__ void __launch_bounds__(kThreads)
    transform_blocks(const ImageJob* jobs, const std::uint8_t* parts, std::uint8_t* scratch) {
  // Rows of nine numbers, so that columns of several blocks meet different banks.
  __shared__ std::int32_t all[kBlocksAtOnce][kBlockPixels + 4];
  const ImageJob& job = jobs[blockIdx.y];
  if (job.form != ImageForm::blocks) return;
  const auto* starts = reinterpret_cast<const std::uint32_t*>(parts + job.starts);
  const auto* coefficients = reinterpret_cast<const std::uint32_t*>(parts + job.coefficients);
  const int lane = static_cast<int>(threadIdx.x) % kBlockSide;
  const int group = static_cast<int>(threadIdx.x) / kBlockSide;
  std::int32_t* numbers = all[group];
  const int step = static_cast<int>(gridDim.x) * kBlocksAtOnce;
  for (int first = static_cast<int>(blockIdx.x) * kBlocksAtOnce; first < job.blocks;
       first += step) {
    const int block = first + group;
    const bool here = block < job.blocks;
    const BlockChannel& channel = channel_of(job, here ? block : 0);
    for (int i = lane; i < kBlockPixels; i += kBlockSide) numbers[i] = 0;
    __syncwarp();
    if (here) {
      const std::uint32_t start = starts[block], end = block_end(start);
      for (std::uint32_t i = block_begin(start) + static_cast<std::uint32_t>(lane); i < end;
           i += kBlockSide) {
        image_steps::put_coefficient(coefficients[i], channel.quantisation, numbers);
      }
    }
    __syncwarp();
    image_steps::inverse_transform<image_steps::kColumnShift>(numbers + lane, kBlockSide);
    __syncwarp();
    std::int32_t* row = numbers + lane * kBlockSide;
    image_steps::inverse_transform<image_steps::kRowShift>(row, 1);
    if (here) {
      const int at = block - channel.first_block;
      const int y = at / channel.columns * kBlockSide + lane;
      std::uint8_t* to = scratch + channel.plane + static_cast<std::size_t>(y) * channel.stride() +
                         at % channel.columns * kBlockSide;
      uint2 bytes;
      auto* byte = reinterpret_cast<std::uint8_t*>(&bytes);
      for (int i = 0; i < kBlockSide; ++i) byte[i] = image_steps::to_byte(row[i] + 128);
      *reinterpret_cast<uint2*>(to) = bytes;
    }
    __syncwarp();
  }
}

// Calls body(i) for each i below `count`, shared by the thread blocks of an image.
template <typename Body>
__device__ void for_each(int count, Body&& body) {
  const int step = static_cast<int>(gridDim.x) * kThreads;
  for (int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x); i < count;
       i += step) {
    body(i);
  }
}

__device__ void store_pixel(std::uint8_t* to, const std::uint8_t* rgb) {
  *reinterpret_cast<uchar4*>(to) = make_uchar4(rgb[0], rgb[1], rgb[2], 0);
}

__global__ void __launch_bounds__(kThreads)
    make_colours(const ImageJob* jobs, std::uint8_t* scratch) {
  const ImageJob& job = jobs[blockIdx.y];
  if (job.form != ImageForm::blocks) return;
  for_each(job.area_width * job.area_height, [&](int i) {
    const int x = i % job.area_width, y = i / job.area_width;
    std::uint8_t rgb[3];
    image_steps::colour_at(job, scratch, x, y, rgb);
    store_pixel(scratch + job.pixels + y * job.pixel_stride + std::size_t{4} * x, rgb);
  });
}

__global__ void __launch_bounds__(kThreads)
    resize_rows(const ImageJob* jobs, const std::uint8_t* parts, std::uint8_t* scratch) {
  const ImageJob& job = jobs[blockIdx.y];
  if (job.form == ImageForm::finished) return;
  const image_steps::AxisView axis = image_steps::axis_view(
      reinterpret_cast<const std::int32_t*>(parts + job.axis_x), job.width, job.most_x);
  for_each(job.width * job.kept_rows, [&](int i) {
    const int x = i % job.width, y = i / job.width;
    std::uint8_t rgb[3];
    image_steps::resize_pixel(axis, x, 0,
                              scratch + job.pixels + (job.first_row + y) * job.pixel_stride,
                              static_cast<std::size_t>(job.pixel_bytes), rgb);
    store_pixel(scratch + job.between + std::size_t{4} * i, rgb);
  });
}

__global__ void __launch_bounds__(kThreads)
    resize_columns(const ImageJob* jobs, const std::uint8_t* parts, const std::uint8_t* scratch,
                   std::uint8_t* dst, std::size_t sample_bytes, int channels) {
  const ImageJob& job = jobs[blockIdx.y];
  if (job.form == ImageForm::finished) return;
  const image_steps::AxisView axis = image_steps::axis_view(
      reinterpret_cast<const std::int32_t*>(parts + job.axis_y), job.height, job.most_y);
  const int plane = job.width * job.height;
  std::uint8_t* sample = dst + blockIdx.y * sample_bytes;
  for_each(plane, [&](int i) {
    const int x = i % job.width, y = i / job.width;
    std::uint8_t rgb[3];
    image_steps::resize_pixel(axis, y, job.first_row, scratch + job.between + std::size_t{4} * x,
                              std::size_t{4} * job.width, rgb);
    const std::size_t at = image_steps::place_shown(job.orientation, x, y, job.width, job.height);
    for (int c = 0; c < channels; ++c) sample[static_cast<std::size_t>(c) * plane + at] = rgb[c];
  });
}

}  // namespace

cudaError_t finish_images(const FinishCall& call, cudaStream_t stream) {
  const dim3 grid(kGroupsOfImage, static_cast<unsigned>(call.count));
  transform_blocks<<<grid, kThreads, 0, stream>>>(call.jobs, call.parts, call.scratch);
  make_colours<<<grid, kThreads, 0, stream>>>(call.jobs, call.scratch);
  resize_rows<<<grid, kThreads, 0, stream>>>(call.jobs, call.parts, call.scratch);
  resize_columns<<<grid, kThreads, 0, stream>>>(call.jobs, call.parts, call.scratch, call.dst,
                                                call.sample_bytes, call.channels);
  return cudaGetLastError();
}

}  // namespace ridgeline::cuda
