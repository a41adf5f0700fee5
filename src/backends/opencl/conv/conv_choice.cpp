#include "backends/opencl/conv/conv_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "backends/opencl/conv/conv_launch.h"
#include "base/clock.h"
#include "base/error.h"
#include "plan/choice_cache.h"

namespace ridgeline::opencl::conv {
namespace {

enum class Kind : std::uint8_t { forward, data, weights };

// In the order in which they are tried; the first is the choice without measuring. CPUs do best
// with blocks in registers, graphics processors with tiles in local memory.
std::vector<Tile> tiles_for(Kind kind, bool cpu) {
  const Tile local = {.local = true, .rows = 64, .vectors = 4};
  const Tile smaller = {.local = true, .rows = 32, .vectors = 2};
  if (kind == Kind::weights) {
    if (cpu)
      return {{.rows = 6, .vectors = 4}, {.rows = 12, .vectors = 2}, {.rows = 8, .vectors = 2}};
    return {local, smaller, {.rows = 4, .vectors = 1}};
  }
  if (cpu)
    return {{.rows = 8, .vectors = 2}, {.rows = 12, .vectors = 2}, {.rows = 6, .vectors = 4}};
  return {local, smaller, {.rows = 4, .vectors = 1}};
}

Code code_of(Kind kind, const Tile& tile) {
  return kind == Kind::weights ? weights_code(tile) : gather_code(tile);
}

// Whether the device compiles the tile's kernel and has room for its work-groups.
bool can_run(Context& context, Kind kind, const Tile& tile) {
  const Code code = code_of(kind, tile);
  if (tile.local && context.properties().local_bytes < tile.local_bytes()) return false;
  if (!context.refuse(code).empty()) return false;
  return !tile.local || context.work_group_of(code) >= kTileSide * kTileSide;
}

std::vector<Tile> candidates_of(Context& context, Kind kind) {
  static std::map<std::pair<Context*, Kind>, std::vector<Tile>> known;
  std::vector<Tile>& tiles = known[{&context, kind}];
  if (!tiles.empty()) return tiles;
  for (const Tile& tile : tiles_for(kind, context.properties().cpu)) {
    if (can_run(context, kind, tile)) tiles.push_back(tile);
  }
  if (tiles.empty()) fail("OpenCL: {}", context.refuse(code_of(kind, {.rows = 4, .vectors = 1})));
  return tiles;
}

std::string key_of(Context& context, const Geometry& g, Kind kind) {
  const Conv2dAttributes& a = g.attributes;
  const Properties& p = context.properties();
  return fmt::format(
      "{} {}x{}x{}x{} -> {}x{}x{}, kernel {}x{}, stride {}x{}, pad {} {}, dilation {}x{}, groups "
      "{} | {} | {} | {}",
      kind == Kind::forward ? "forward"
      : kind == Kind::data  ? "data"
                            : "weights",
      g.images, g.src_channels, g.src_h, g.src_w, g.dst_channels, g.dst_h, g.dst_w, a.kernel_h,
      a.kernel_w, a.stride_h, a.stride_w, a.pad_top, a.pad_left, a.dilation_h, a.dilation_w,
      a.groups, p.name, p.platform, p.driver);
}

std::filesystem::path cache_file() {
  std::filesystem::path file = default_choice_cache();
  if (!file.empty()) file.replace_filename("opencl_tiles.json");
  return file;
}

// Memory of a trial, given back at its end.
class Trial {
 public:
  explicit Trial(Context& context) : queue_(context) {}
  ~Trial() {
    for (std::byte* block : blocks_) queue_.release(block);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  [[nodiscard]] Queue& queue() { return queue_; }

  [[nodiscard]] std::byte* floats(std::int64_t count) {
    return bytes(static_cast<std::size_t>(count) * sizeof(float));
  }
  // Ones: zeros and denormal numbers may take another time.
  [[nodiscard]] std::byte* bytes(std::size_t size) {
    constexpr float kOne = 1.0F;
    size = (std::max<std::size_t>(size, 1) + sizeof(kOne) - 1) / sizeof(kOne) * sizeof(kOne);
    std::byte* block = queue_.allocate(size);
    blocks_.push_back(block);
    const Place place = queue_.place(block);
    check(library().clEnqueueFillBuffer(queue_.handle(), place.buffer, &kOne, sizeof(kOne),
                                        place.offset, size, 0, nullptr, nullptr),
          "a fill");
    return block;
  }

 private:
  Queue queue_;
  std::vector<std::byte*> blocks_;
};

// Seconds of the fastest of some runs after a first one, which loads code.
double seconds_of(Queue& queue, const std::function<void()>& launch) {
  constexpr int kRounds = 4;
  double fastest = std::numeric_limits<double>::infinity();
  launch();
  queue.finish();
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point begin = Clock::now();
    launch();
    queue.finish();
    fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return fastest;
}

double time_of(Context& context, const Geometry& g, Kind kind, const Tile& tile) {
  Trial trial(context);
  Queue& queue = trial.queue();
  const std::int64_t src_pixels = g.images * g.src_h * g.src_w;
  const std::int64_t dst_pixels = g.images * g.dst_h * g.dst_w;
  const Rows src = {trial.floats(src_pixels * g.src_channels), src_pixels, g.src_channels,
                    g.src_channels};
  const Rows dst = {trial.floats(dst_pixels * g.dst_channels), dst_pixels, g.dst_channels,
                    g.dst_channels};
  const std::byte* weights = trial.floats(g.dst_channels * g.group_src() * g.taps());
  if (kind == Kind::weights) {
    const WeightsPlan plan = plan_backward_weights(g, tile, context.properties().compute_units);
    std::byte* workspace = trial.bytes(plan.workspace_bytes);
    return seconds_of(queue, [&] { run_weights(plan, src, dst, weights, workspace, queue); });
  }
  const bool forward = kind == Kind::forward;
  const GatherPlan plan = forward ? plan_forward(g, tile) : plan_backward_data(g, tile);
  std::byte* workspace = trial.bytes(plan.workspace_bytes);
  return seconds_of(queue, [&] {
    run_gather(plan, forward ? src : dst, weights, forward ? dst : src, {}, workspace, queue);
  });
}

// The first candidate where there is no room for a trial.
Tile fastest_of(Context& context, const Geometry& g, Kind kind, const std::vector<Tile>& tiles) {
  Tile best = tiles.front();
  double least = std::numeric_limits<double>::infinity();
  try {
    for (const Tile& tile : tiles) {
      const double seconds = time_of(context, g, kind, tile);
      if (seconds < least) best = tile;
      least = std::min(least, seconds);
    }
  } catch (const Error&) {
    return tiles.front();
  }
  return best;
}

Tile tile_for(const Geometry& g, Kind kind, bool measure) {
  Context& context = current();
  const std::vector<Tile> tiles = candidates_of(context, kind);
  if (!measure || tiles.size() == 1) return tiles.front();
  const std::string key = key_of(context, g, kind);
  static std::map<std::string, Tile> known;
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const std::vector<std::string> stored = load_choice(cache_file(), key);
  for (const Tile& tile : tiles) {
    if (stored.size() == 1 && stored[0] == tile.text()) return known[key] = tile;
  }
  const Tile best = fastest_of(context, g, kind, tiles);
  store_choice(cache_file(), key, {best.text()});
  return known[key] = best;
}

}  // namespace

GatherPlan choose_forward(const Geometry& geometry, bool measure) {
  return plan_forward(geometry, tile_for(geometry, Kind::forward, measure));
}

GatherPlan choose_backward_data(const Geometry& geometry, bool measure) {
  return plan_backward_data(geometry, tile_for(geometry, Kind::data, measure));
}

WeightsPlan choose_backward_weights(const Geometry& geometry, bool measure) {
  return plan_backward_weights(geometry, tile_for(geometry, Kind::weights, measure),
                               current().properties().compute_units);
}

}  // namespace ridgeline::opencl::conv
