#include "backends/opencl/conv/conv_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include "backends/opencl/conv/conv_launch.h"
#include "base/clock.h"
#include "base/error.h"
#include "plan/choice_cache.h"

namespace ridgeline::opencl::conv {
namespace {

enum class Kind : std::uint8_t { forward, data, weights };

std::vector<Tile>& offered() {
  static std::vector<Tile> tiles;
  return tiles;
}

// In the order in which they are tried; the first is the choice without measuring. CPUs do best
// with blocks in registers, graphics processors with tiles in local memory.
std::vector<Tile> tiles_for(Kind kind, bool cpu) {
  if (!offered().empty()) return offered();
  if (!cpu) {
    return {{.local = true, .rows = 64, .vectors = 4}, {.local = true, .rows = 32, .vectors = 2}};
  }
  if (kind == Kind::weights) {
    return {{.rows = 6, .vectors = 4}, {.rows = 12, .vectors = 2}, {.rows = 8, .vectors = 2}};
  }
  return {{.rows = 8, .vectors = 2},
          {.rows = 12, .vectors = 2},
          {.rows = 6, .vectors = 4},
          {.rows = 12, .vectors = 1},
          {.rows = 12, .vectors = 1, .lanes = 8}};
}

// Asks least of a device: where none of the others can be used.
constexpr Tile kPlainest = {.rows = 4, .vectors = 1};

Code code_of(Kind kind, const Tile& tile, bool half) {
  return kind == Kind::weights ? weights_code(tile, half) : gather_code(tile, half);
}

// Why the device cannot run a tile: its kernel does not compile, or there is no room for its
// work-groups.
std::string refuse(Context& context, Kind kind, const Tile& tile, bool half) {
  const Code code = code_of(kind, tile, half);
  const Properties& properties = context.properties();
  if (properties.local_bytes < tile.local_bytes()) {
    return fmt::format("{} needs {} bytes of local memory, and {} has {}", tile.text(),
                       tile.local_bytes(), properties.name, properties.local_bytes);
  }
  constexpr std::size_t kGroup = kTileSide * kTileSide;
  if (tile.local && properties.work_group < kGroup) {
    return fmt::format("{} needs work-groups of {}, and those of {} have at most {}", tile.text(),
                       kGroup, properties.name, properties.work_group);
  }
  if (std::string reason = context.refuse(code); !reason.empty()) return reason;
  if (tile.local && context.work_group_of(code) < kGroup) {
    return fmt::format("{} leaves no room on {} for work-groups of {}", tile.text(),
                       properties.name, kGroup);
  }
  return {};
}

struct Candidates {
  std::vector<Tile> tiles;
  std::string reason;  // why others are not among them
};

// Whether a tile compiles is found out by compiling it, once for a device.
const Candidates& candidates_of(Context& context, Kind kind, bool half) {
  static std::map<std::tuple<Context*, Kind, bool, std::string>, Candidates> known;
  std::string offer;
  for (const Tile& tile : offered()) offer += tile.text();
  const auto [found, fresh] = known.try_emplace({&context, kind, half, offer});
  Candidates& candidates = found->second;
  if (!fresh) return candidates;
  for (const Tile& tile : tiles_for(kind, context.properties().cpu)) {
    const std::string reason = refuse(context, kind, tile, half);
    if (reason.empty()) {
      candidates.tiles.push_back(tile);
    } else if (candidates.reason.empty()) {
      candidates.reason = reason;
    }
  }
  return candidates;
}

std::string refuse_kind(Kind kind, Tiles which, bool half) {
  Context& context = current();
  if (which == Tiles::plain) return refuse(context, kind, kPlainest, half);
  const Candidates& candidates = candidates_of(context, kind, half);
  return candidates.tiles.empty() ? candidates.reason : std::string();
}

std::string key_of(Context& context, const Geometry& g, Kind kind) {
  const Conv2dAttributes& a = g.attributes;
  const Properties& p = context.properties();
  return fmt::format(
      "{} {}x{}x{}x{} -> {}x{}x{}, kernel {}x{}, stride {}x{}, pad {} {}, dilation {}x{}, groups "
      "{}{} | {} | {} | {}",
      kind == Kind::forward ? "forward"
      : kind == Kind::data  ? "data"
                            : "weights",
      g.images, g.src_channels, g.src_h, g.src_w, g.dst_channels, g.dst_h, g.dst_w, a.kernel_h,
      a.kernel_w, a.stride_h, a.stride_w, a.pad_top, a.pad_left, a.dilation_h, a.dilation_w,
      a.groups, g.half ? ", f16" : "", p.name, p.platform, p.driver);
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
                    g.src_channels, g.half};
  const Rows dst = {trial.floats(dst_pixels * g.dst_channels), dst_pixels, g.dst_channels,
                    g.dst_channels, g.half};
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

// Of a panel of weights, of all groups that are computed together.
std::int64_t channels_of(const Geometry& g, Kind kind) {
  if (kind == Kind::forward) return plan_forward(g, kPlainest).classes.front().width;
  if (kind == Kind::data) return plan_backward_data(g, kPlainest).classes.front().width;
  return std::numeric_limits<std::int32_t>::max();
}

// Those that compute few channels that are not there; short vectors only for few channels.
std::vector<Tile> fitting(const std::vector<Tile>& tiles, std::int64_t channels) {
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  const auto computed = [&](const Tile& tile) {
    return (channels + tile.width() - 1) / tile.width() * tile.width();
  };
  for (const Tile& tile : tiles) fewest = std::min(fewest, computed(tile));
  std::vector<Tile> kept;
  for (const Tile& tile : tiles) {
    const bool needed = tile.lanes == 16 || channels <= tile.lanes;
    if (needed && computed(tile) < 2 * fewest) kept.push_back(tile);
  }
  return kept;
}

Tile tile_for(const Geometry& g, Kind kind, Tiles which, bool measure) {
  Context& context = current();
  if (which == Tiles::plain) return kPlainest;
  const std::vector<Tile> tiles =
      fitting(candidates_of(context, kind, g.half).tiles, channels_of(g, kind));
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

std::string refuse_gather(Tiles tiles, bool half) {
  return refuse_kind(Kind::forward, tiles, half);
}

std::string refuse_weights(Tiles tiles, bool half) {
  return refuse_kind(Kind::weights, tiles, half);
}

bool takes_few(const Geometry& geometry, Tiles tiles) {
  return tiles == Tiles::all && offered().empty() && current().properties().cpu &&
         has_few_pixels(geometry);
}

GatherPlan choose_forward(const Geometry& geometry, Tiles tiles, bool measure) {
  return plan_forward(geometry, tile_for(geometry, Kind::forward, tiles, measure));
}

GatherPlan choose_backward_data(const Geometry& geometry, Tiles tiles, bool measure) {
  return plan_backward_data(geometry, tile_for(geometry, Kind::data, tiles, measure));
}

WeightsPlan choose_backward_weights(const Geometry& geometry, Tiles tiles, bool measure) {
  return plan_backward_weights(geometry, tile_for(geometry, Kind::weights, tiles, measure),
                               current().properties().compute_units);
}

void offer_tiles(std::vector<Tile> tiles) { offered() = std::move(tiles); }

}  // namespace ridgeline::opencl::conv
