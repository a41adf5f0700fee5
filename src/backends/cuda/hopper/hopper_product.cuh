#pragma once

// One kernel for the three products of a convolution. The last of a block's warps are the
// producer: one of their threads starts copies that gather slices of both operands into a ring in
// shared memory. Two warpgroups, the consumers, each multiply half of the tile's rows and finish
// them: forward and data pass through shared memory on their way to dst, where the statistics are
// taken as well. A block goes on to further tiles; while consumers finish one, the producer fills
// the ring for the next.

#include "backends/cuda/hopper/hopper_writers.cuh"

namespace ridgeline::cuda::hopper {

// Where a gathered pixel's tap (0, 0) lies.
struct Origin {
  int image, h, w;
};

__device__ __forceinline__ Origin origin_of(const Product& p, int pixel) {
  const int row = divide(p.by_grid_w, pixel), image = divide(p.by_grid_h, row);
  return {image, (row - image * static_cast<int>(p.by_grid_h.divisor)) * p.step_h + p.origin_h,
          (pixel - row * static_cast<int>(p.by_grid_w.divisor)) * p.step_w + p.origin_w};
}

// The slices of a tile's depth.
template <class C>
__device__ __forceinline__ int slices_of(const Product& p, const Piece& piece) {
  if constexpr (C::kImages) return p.taps * p.channel_slices;
  return min(p.slices - piece.split * p.slices_per_split, p.slices_per_split);
}

template <class C>
class Producer {
 public:
  __device__ __forceinline__ Producer(const Product& p, const Ring<C>& ring) : p_(p), ring_(ring) {}

  __device__ __forceinline__ void load(const Piece& piece) {
    if constexpr (C::kImages) {
      load_taps(piece);
      if constexpr (C::kRole == Role::gated) load_extras(piece);
    } else {
      load_pixel_slices(piece);
    }
  }

 private:
  // Waits until the next stage is free; gives its number and goes on.
  __device__ __forceinline__ int claim(int bytes) {
    const int stage = place_.stage;
    wait_for(&ring_.empty[stage], place_.parity ^ 1);
    arrive_expecting(&ring_.full[stage], bytes);
    place_.next();
    return stage;
  }

  __device__ __forceinline__ void load_taps(const Piece& piece) {
    const Origin origin = origin_of(p_, piece.m * C::kRows);
    const int column = piece.n * C::kColumns;
    for (int tap = 0, h = 0, w = 0; tap < p_.taps; ++tap) {
      for (int channel = 0; channel < p_.channel_slices * kSlice; channel += kSlice) {
        const int stage = claim(C::kStageBytes);
        Barrier* full = &ring_.full[stage];
        load_pixels(ring_.a(stage), &p_.a, full, channel, origin.w, origin.h, origin.image, w, h);
        if constexpr (C::kDepthInnerB) {
          load_box(ring_.b(stage), &p_.b, full, channel, tap, column);
        } else {
          // Gathered from the other side, taps come in reverse.
          for (int i = 0; i < C::kColumnBoxes; ++i) {
            load_box(ring_.b(stage) + i * kBoxBytes, &p_.b, full, column + i * 64,
                     p_.taps - 1 - tap, channel);
          }
        }
      }
      w += p_.dilation_w;
      if (w == p_.kernel_w * p_.dilation_w) w = 0, h += p_.dilation_h;
    }
  }

  // For each box of columns in turn, as GatedWriter reads them.
  __device__ __forceinline__ void load_extras(const Piece& piece) {
    const int begin = piece.n * C::kColumns, end = min(begin + C::kColumns, p_.columns);
    for (int column = begin; column < end; column += 64) {
      for (int from = 0; from < p_.gate.extras; from += C::kStageExtras) {
        const int count = min(C::kStageExtras, p_.gate.extras - from);
        const int stage = claim(count * C::kExtraBytes);
        for (int i = 0; i < count; ++i) {
          load_box(ring_.a(stage) + i * C::kExtraBytes, &p_.gate.images[from + i],
                   &ring_.full[stage], column, piece.m * C::kRows);
        }
      }
    }
  }

  __device__ __forceinline__ void load_pixel_slices(const Piece& piece) {
    const int slices = slices_of<C>(p_, piece);
    const int first_unit = piece.n * C::kColumnBoxes;
    const int units = min(C::kColumnBoxes, p_.taps * p_.channel_slices - first_unit);
    for (int slice = 0; slice < slices; ++slice) {
      const int pixel = (piece.split * p_.slices_per_split + slice) * kSlice;
      const Origin origin = origin_of(p_, pixel);
      const int stage = claim(C::kBytesA + units * kBoxBytes);
      Barrier* full = &ring_.full[stage];
      for (int i = 0; i < C::kRows / 64; ++i) {
        load_box(ring_.a(stage) + i * kBoxBytes, &p_.a, full, piece.m * C::kRows + i * 64, pixel);
      }
      for (int i = 0; i < units; ++i) {
        const int tap = divide(p_.by_channel_slices, first_unit + i);
        const int channel = (first_unit + i - tap * p_.channel_slices) * kSlice;
        const int h = tap / p_.kernel_w, w = tap - h * p_.kernel_w;
        load_pixels(ring_.b(stage) + i * kBoxBytes, &p_.b, full, channel, origin.w, origin.h,
                    origin.image, w * p_.dilation_w, h * p_.dilation_h);
      }
    }
  }

  const Product& p_;
  const Ring<C>& ring_;
  Place<C::kStages> place_;
};

// Multiplies the slices of a tile as they come. A stage is given back when the products after its
// own have started: then its own are over.
template <class C>
__device__ __forceinline__ void add_slices(RingReader<C>& ring, int group, int slices,
                                           Sums<C>& sums) {
  RingReader<C> former = ring;
  for (int slice = 0; slice < slices; ++slice) {
    const unsigned stage = shared_address(ring.wait());
    const unsigned a = stage + group * C::kRowBoxes * kBoxBytes, b = stage + C::kBytesA;
    begin_products();
#pragma unroll
    for (int step = 0; step < kSlice / 16; ++step) {
      // 16 positions further: 32 bytes along a row, or 16 rows.
      const unsigned in_a = step * (C::kDepthInnerA ? 32 : 16 * kRowBytes);
      const unsigned in_b = step * (C::kDepthInnerB ? 32 : 16 * kRowBytes);
#pragma unroll
      for (int i = 0; i < C::kRowBoxes; ++i) {
        multiply<typename C::T, C::kDepthInnerA, C::kDepthInnerB>(
            sums.of[i], describe_operand(a + i * kBoxBytes + in_a, kBoxBytes),
            describe_operand(b + in_b, kBoxBytes), slice > 0 || step > 0);
      }
    }
    commit_products();
    ring.next();
    wait_for_products<1>();
    if (slice == 0) continue;
    former.release();
    former.next();
  }
  wait_for_products<0>();
  former.release();
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    product_kernel(const __grid_constant__ Product p) {
  extern __shared__ __align__(1024) unsigned char shared[];
  unsigned char* staged = shared + C::kStages * C::kStageBytes;
  auto* barriers = reinterpret_cast<Barrier*>(staged + C::kStagedBytes);
  const Ring<C> ring = {shared, barriers, barriers + C::kStages};
  if (threadIdx.x == 0) {
    for (int i = 0; i < C::kStages; ++i) {
      init_barrier(&ring.full[i], 1);
      init_barrier(&ring.empty[i], kConsumers);
    }
    publish_barriers();
    prefetch_map(&p.a);
    prefetch_map(&p.b);
    if constexpr (C::kImages) prefetch_map(&p.dst);
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / kGroupThreads;
  const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);
  if (group == kConsumers) {
    if constexpr (C::kGivesRegisters) give_registers<C::kProducerRegisters>();
    if (threadIdx.x % kGroupThreads != 0) return;
    Producer<C> producer(p, ring);
    for (int tile = first; tile < p.tiles; tile += step) producer.load(piece_of(p, tile));
  } else {
    if constexpr (C::kGivesRegisters) take_registers<C::kConsumerRegisters>();
    Writer<C> writer(p, staged, group);
    RingReader<C> reader(ring);
    for (int tile = first; tile < p.tiles; tile += step) {
      const Piece piece = piece_of(p, tile);
      Sums<C> sums;
      add_slices(reader, group, slices_of<C>(p, piece), sums);
      writer.write(piece, sums, reader);
    }
    writer.finish(staged, piece_of(p, first));
  }
}

template <class C>
void start_product(const Product& p, int blocks, Stream stream) {
  const auto* function = reinterpret_cast<const void*>(product_kernel<C>);
  (void)cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             C::kSharedBytes);
  void* arguments[] = {const_cast<Product*>(&p)};
  (void)cudaLaunchKernel(function, dim3(static_cast<unsigned>(blocks)), dim3(C::kThreads),
                         arguments, C::kSharedBytes, stream);
  check_launch("a convolution on Hopper's instructions");
}

template <typename T, Role role>
void start_tile(Tile tile, const Product& p, int blocks, Stream stream) {
  switch (tile) {
    case Tile::wide:
      return start_product<Config<T, role, 128, 128, 2>>(p, blocks, stream);
    case Tile::narrow:
      return start_product<Config<T, role, 128, 64, 2>>(p, blocks, stream);
    case Tile::high:
      return start_product<Config<T, role, 256, 64, 2>>(p, blocks, stream);
    case Tile::large:
      return start_product<Config<T, role, 128, 256, 1>>(p, blocks, stream);
    case Tile::tall:
      return start_product<Config<T, role, 256, 128, 1>>(p, blocks, stream);
  }
}

template <Role role>
void start_type(DType dtype, Tile tile, const Product& p, int blocks, Stream stream) {
  if (dtype == DType::bf16) {
    start_tile<bf16, role>(tile, p, blocks, stream);
  } else {
    start_tile<f16, role>(tile, p, blocks, stream);
  }
}

}  // namespace ridgeline::cuda::hopper
