#include "report/exhibits/figure_roofs.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "report/exhibits/figure_values.h"

namespace ridgeline::report {
namespace {

// Room around points and ridges, on logarithmic axes.
constexpr double kRoom = 3.0;
// With more devices than that their caches are hidden at first.
constexpr std::size_t kFewDevices = 2;

struct Frame {
  double left = std::numeric_limits<double>::infinity(), right = 0.0;
  double bottom = std::numeric_limits<double>::infinity(), top = 0.0;

  void include(double x, double y) {
    left = std::min(left, x);
    right = std::max(right, x);
    bottom = std::min(bottom, y);
    top = std::max(top, y);
  }
};

std::vector<const ComputeRoof*> used_roofs(const DeviceRoofs& device) {
  std::vector<const ComputeRoof*> used;
  for (const ComputeRoof& roof : device.roofs.compute) {
    if (device.units.contains(roof.unit)) used.push_back(&roof);
  }
  return used;
}

// Nearest powers of ten and their halves would waste room: a third of a decade is enough.
Frame frame_of(const Figure& figure, const std::vector<DeviceRoofs>& devices) {
  Frame frame;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) frame.include(point.x, point.y);
  }
  for (const DeviceRoofs& device : devices) {
    for (const ComputeRoof* compute : used_roofs(device)) {
      const double ridge = ridge_point(*compute, device.roofs.memory.back());
      frame.include(ridge, compute->flops_per_second);
    }
  }
  frame.left /= kRoom;
  frame.right *= kRoom;
  frame.bottom /= kRoom;
  frame.top *= kRoom;
  return frame;
}

std::string rate_text(double per_second, const char* unit) {
  const char* const prefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (per_second >= 1000.0 && prefix + 1 < std::size(prefixes)) {
    per_second /= 1000.0;
    ++prefix;
  }
  return fmt::format("{:.3g} {}{}", per_second, prefixes[prefix], unit);
}

// The colour tells the device; its name is added where two have the same roof.
void add_roof(Figure& figure, const DeviceRoofs& device, const std::string& name, bool hidden,
              std::vector<Point> points) {
  const bool taken =
      std::ranges::any_of(figure.series, [&](const Series& other) { return other.name == name; });
  figure.series.push_back({.name = taken ? device.name + ": " + name : name,
                           .style = SeriesStyle::roof,
                           .points = std::move(points),
                           .group = device.name,
                           .hidden = hidden});
}

// From the left or the bottom of the frame up to the highest roof or the right of the frame.
void add_slope(Figure& figure, const DeviceRoofs& device, const MemoryRoof& memory, double highest,
               const Frame& frame, bool hidden) {
  const double speed = memory.bytes_per_second;
  const double begin = std::max(frame.left, frame.bottom / speed);
  const double end = std::min(frame.right, highest / speed);
  if (begin >= end) return;
  add_roof(figure, device, fmt::format("{} {}", memory.level, rate_text(speed, "B/s")), hidden,
           {{.x = begin, .y = begin * speed}, {.x = end, .y = end * speed}});
}

void add_flat(Figure& figure, const DeviceRoofs& device, const ComputeRoof& compute,
              double fastest_memory, const Frame& frame) {
  const double height = compute.flops_per_second;
  const double begin = std::max(frame.left, height / fastest_memory);
  if (begin >= frame.right) return;
  add_roof(figure, device, fmt::format("{} {}", compute.unit, rate_text(height, "FLOP/s")), false,
           {{.x = begin, .y = height}, {.x = frame.right, .y = height}});
}

void scale_for_reading(Figure& figure, const Frame& frame) {
  // Ticks of the lowest values should not begin with many zeros.
  const DisplayUnit scale = flops_unit(frame.bottom * 100.0);
  figure.y.unit = scale.unit;
  for (Series& series : figure.series) {
    for (Point& point : series.points) {
      point.y *= scale.factor;
      if (point.low) *point.low *= scale.factor;
      if (point.high) *point.high *= scale.factor;
    }
  }
  figure.y.low = frame.bottom * scale.factor;
  figure.y.high = frame.top * scale.factor;
}

}  // namespace

RoofCollection::RoofCollection(const Data& data, const Runs& runs) {
  std::set<std::size_t> machines;
  std::set<std::string> names;
  for (const RunView* run : runs) machines.insert(run->machine);
  for (const RunView* run : runs) {
    const std::string key = key_of(*run);
    auto found = std::ranges::find(keys_, key);
    if (found == keys_.end()) {
      Roofs roofs = data.roofs(*run);
      if (roofs.empty()) continue;
      std::string name = run->run.executor.device;
      if (machines.size() > 1) name = data.machine_of(*run).name + ", " + name;
      if (!names.insert(name).second) {
        name += fmt::format(", {} threads", roofs.threads);
        names.insert(name);
      }
      keys_.push_back(key);
      devices_.push_back({std::move(name), std::move(roofs), {}});
      found = std::prev(keys_.end());
    }
    std::set<std::string>& units = devices_[static_cast<std::size_t>(found - keys_.begin())].units;
    for (const StepTime& step : data.store().steps(run->run.id)) units.insert(step.unit);
  }
}

std::string RoofCollection::key_of(const RunView& run) const {
  const Executor& executor = run.run.executor;
  return fmt::format("{} {} {}", run.machine, executor.device,
                     executor.device == "cpu" ? executor.threads : 0);
}

const DeviceRoofs* RoofCollection::find(const RunView& run) const {
  const auto found = std::ranges::find(keys_, key_of(run));
  if (found == keys_.end()) return nullptr;
  return &devices_[static_cast<std::size_t>(found - keys_.begin())];
}

void draw_roofs(Figure& figure, const std::vector<DeviceRoofs>& devices) {
  if (figure.empty()) return;
  const Frame frame = frame_of(figure, devices);
  figure.x = {.title = "arithmetic intensity",
              .unit = "FLOP/byte",
              .logarithmic = true,
              .low = frame.left,
              .high = frame.right};
  figure.y = {.title = "performance", .logarithmic = true};
  for (const DeviceRoofs& device : devices) {
    const std::vector<const ComputeRoof*> compute = used_roofs(device);
    if (compute.empty()) continue;
    // Both lists begin with the fastest.
    const double highest = compute.front()->flops_per_second;
    const double fastest = device.roofs.memory.front().bytes_per_second;
    for (const MemoryRoof& memory : device.roofs.memory) {
      const bool is_cache = &memory != &device.roofs.memory.back();
      add_slope(figure, device, memory, highest, frame, is_cache && devices.size() > kFewDevices);
    }
    for (const ComputeRoof* roof : compute) {
      add_flat(figure, device, *roof, fastest, frame);
    }
  }
  scale_for_reading(figure, frame);
}

}  // namespace ridgeline::report
