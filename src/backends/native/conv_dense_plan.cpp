#include <algorithm>
#include <iterator>
#include <utility>

#include "backends/native/conv_dense_job.h"
#include "backends/native/row_space.h"
#include "base/parallel.h"

namespace ridgeline::native::conv {
namespace {

// With fewer pixels than this a weight is used so rarely that writing it packed to memory and
// reading it back costs more than packing a block where it is used.
constexpr std::int64_t kLatePixels = 1024;
constexpr std::int64_t kLateChannels = 32;
constexpr std::int64_t kLateWeights = 128 * 1024;

// Stretches of src that a block reads. Neighbours that touch in memory become one.
class RunList {
 public:
  RunList(const DenseJob& job, std::int64_t first) : runs_(job.runs), next_(first) {}

  void begin(Block& block) {
    block_ = &block;
    block.first_run = next_;
    block.runs = 0;
  }
  void add(std::int64_t offset, std::int64_t count) {
    Run* last = block_->runs == 0 ? nullptr : &runs_[next_ - 1];
    if (last != nullptr && last->rows + last->count == offset) {
      last->count += count;
      return;
    }
    runs_[next_++] = {offset, 0, count};
    ++block_->runs;
  }
  void end() {
    const Run* first = runs_ + block_->first_run;
    const bool even = std::all_of(first, first + block_->runs,
                                  [&](const Run& run) { return run.count == first->count; });
    block_->run_length = even && block_->runs > 0 ? first->count : 0;
  }

 private:
  Run* runs_;
  std::int64_t next_;
  Block* block_ = nullptr;
};

// Packed early: the depth runs over taps, then channels, and is cut anywhere.
void add_depth(const DenseJob& job, const std::vector<Tap>& taps, Range depth, RunList& runs) {
  const std::int64_t channels = job.plan->geometry.src_group();
  for (std::int64_t k = depth.begin; k < depth.end;) {
    const std::int64_t tap = k / channels, channel = k % channels;
    const std::int64_t count = std::min(channels - channel, depth.end - k);
    runs.add(job.layout.tap_offset(taps[static_cast<std::size_t>(tap)]) + channel, count);
    k += count;
  }
}

void list_blocks(const DenseJob& job, std::size_t index) {
  const DensePlan& plan = *job.plan;
  const DensePlan::PhasePlan& phase = plan.phases[index];
  const std::vector<Tap>& taps = plan.geometry.phases[index].taps;
  const std::int64_t channels = plan.geometry.src_group();
  RunList runs(job, phase.first_run);
  for (std::int64_t b = 0; b < phase.blocks; ++b) {
    Block& block = job.blocks[phase.first_block + b];
    block = {};
    runs.begin(block);
    if (plan.late) {
      // All taps of a few channels: what a block packs lies together in the plain weights.
      block.first_channel = channels * b / phase.blocks;
      block.channels = channels * (b + 1) / phase.blocks - block.first_channel;
      for (const Tap& tap : taps) {
        runs.add(job.layout.tap_offset(tap) + block.first_channel, block.channels);
      }
    } else {
      const Range depth{phase.depth * b / phase.blocks, phase.depth * (b + 1) / phase.blocks};
      block.depth = depth.begin;
      add_depth(job, taps, depth, runs);
    }
    runs.end();
  }
}

void list_pixels(const DenseJob& job, std::size_t index) {
  const DensePlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const Phase& phase = g.phases[index];
  Pixel* pixel = job.pixels + plan.phases[index].first_pixel;
  for (std::int64_t image = 0; image < plan.bands.images; ++image) {
    for (std::int64_t row = 0; row < std::min(plan.bands.rows, phase.rows); ++row) {
      const std::int64_t src =
          image * job.layout.image_pitch + row * g.src_step_y * job.layout.row_pitch;
      const std::int64_t dst =
          image * job.dst_strides[0] + (phase.first_y + row * g.dst_step_y) * job.dst_strides[2];
      for (std::int64_t col = 0; col < phase.cols; ++col) {
        *pixel++ = {src + col * g.src_step_x * job.layout.pixel_pitch,
                    dst + (phase.first_x + col * g.dst_step_x) * job.dst_strides[3]};
      }
    }
  }
}

// Whether, and with how many bands, to pack late: each pair of a band and a panel packs its own
// weights, so there must be few bands, yet enough pairs to keep all threads busy.
bool pack_late(const Geometry& g, const Panels& panels, int threads, Bands& bands) {
  const std::int64_t pixels = g.images * g.rows * g.cols;
  const std::int64_t weights = g.dst_channels * g.src_group() * g.kernel_area;
  if (pixels > kLatePixels || g.src_group() < kLateChannels || weights < kLateWeights) return false;
  const std::int64_t units = g.groups * panels.count;
  for (const std::int64_t count : {1, 2, 4}) {
    const Bands candidate = make_bands(g, pixels / count, count);
    const std::int64_t items = candidate.count * units;
    const std::int64_t rounds = (items + threads - 1) / threads;
    if (candidate.count <= 4 && items * 10 >= rounds * threads * 8) {
      bands = candidate;
      return true;
    }
  }
  return false;
}

// Border rows of small images are worth phases of their own when the products with padding that
// they save outweigh packing their taps again, which costs as much as using a weight kPackProducts
// times. They must also fill a few tiles.
bool split_rows(const DensePlan& plan, const Geometry& split) {
  constexpr std::int64_t kPackProducts = 128, kLeastPixels = 24;
  const Geometry& g = plan.geometry;
  if (plan.late || plan.bands.per_image > 1 || plan.bands.images * g.cols < kLeastPixels) {
    return false;
  }
  const auto taps = [](const Geometry& geometry) {
    std::int64_t count = 0;
    for (const Phase& phase : geometry.phases) count += std::ssize(phase.taps);
    return count;
  };
  const std::int64_t saved = products_of(g) - products_of(split);
  return saved * 30 >= products_of(g) &&
         saved * g.images >= kPackProducts * (taps(split) - taps(g));
}

}  // namespace

std::size_t carve(const DensePlan& plan, std::byte* workspace, DenseJob& job) {
  Carver carver(workspace);
  job.blocks = carver.take<Block>(plan.blocks);
  job.runs = carver.take<Run>(plan.runs);
  job.pixels = carver.take<Pixel>(plan.pixels);
  job.packed = carver.take<float>(plan.late ? plan.late_floats * plan.threads : plan.packed_floats);
  job.buffers =
      carver.take<float>(plan.buffer_floats * (plan.late ? plan.bands.count : plan.threads));
  return carver.bytes();
}

void list_work(const DenseJob& job) {
  for (std::size_t phase = 0; phase < job.plan->phases.size(); ++phase) {
    list_blocks(job, phase);
    list_pixels(job, phase);
  }
}

DensePlan make_dense_plan(Geometry geometry, int threads) {
  DensePlan plan;
  plan.geometry = std::move(geometry);
  plan.threads = threads;
  const Geometry& g = plan.geometry;
  plan.panels = panels_for(g.dst_group());
  const std::int64_t units = g.groups * plan.panels.count;

  plan.late = pack_late(g, plan.panels, threads, plan.bands);
  if (plan.late) {
    plan.chunks = units;
  } else {
    // Floats of src and dst that one pixel of each phase stands for.
    const std::int64_t pixel_floats =
        g.src_channels * g.src_step_y * g.src_step_x + g.dst_channels * g.dst_step_y * g.dst_step_x;
    plan.bands =
        make_bands(g, std::clamp<std::int64_t>(kBandFloats / pixel_floats, 64, 512), 4 * threads);
    Geometry split = without_padded_rows(g);
    if (split_rows(plan, split)) {
      plan.bands = make_image_bands(split, plan.bands.images);
      plan.geometry = std::move(split);
    }
    if (plan.bands.count < 4 * threads) {
      plan.chunks = std::min(units, (4 * threads + plan.bands.count - 1) / plan.bands.count);
    }
  }

  const std::int64_t width = plan.panels.widest() * plan.panels.lanes;
  const std::int64_t panel_depth = kPanelFloats / width;
  for (const Phase& phase : g.phases) {
    const auto taps = static_cast<std::int64_t>(phase.taps.size());
    DensePlan::PhasePlan plan_of;
    plan_of.depth = taps * g.src_group();
    if (plan.late && taps > 0) {
      const std::int64_t channels = std::max<std::int64_t>(4, panel_depth / taps / 4 * 4);
      plan_of.blocks = (g.src_group() + channels - 1) / channels;
      plan.late_floats = std::max(plan.late_floats, taps * channels * width);
    } else {
      plan_of.blocks = std::max<std::int64_t>(1, (plan_of.depth + panel_depth - 1) / panel_depth);
    }
    plan_of.first_block = plan.blocks;
    plan_of.first_run = plan.runs;
    plan_of.first_pixel = plan.pixels;
    plan_of.packed = plan.packed_floats;
    plan.phases.push_back(plan_of);
    plan.blocks += plan_of.blocks;
    // Each cut between blocks may cut a tap in two.
    plan.runs += plan.late ? taps * plan_of.blocks : taps + plan_of.blocks;
    plan.pixels += plan.bands.images * std::min(plan.bands.rows, phase.rows) * phase.cols;
    plan.packed_floats += plan_of.depth * g.groups * plan.panels.padded();
  }
  plan.buffer_floats = band_floats(plan.bands);
  DenseJob job;
  plan.workspace_bytes = carve(plan, nullptr, job);
  return plan;
}

}  // namespace ridgeline::native::conv
