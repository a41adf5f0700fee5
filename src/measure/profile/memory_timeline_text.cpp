// The memory timeline for people and for machines.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "measure/profile/memory_timeline.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;
using Position = MemoryTimeline::Position;

constexpr std::int64_t kBarWidth = 24;

constexpr std::array kScratch = {Role::activation, Role::temporary, Role::workspace};

std::int64_t of(const LiveBytes& live, Role role) {
  return live.by_role[static_cast<std::size_t>(role)];
}

std::int64_t state_of(const LiveBytes& live) {
  std::int64_t state = total_of(live);
  for (const Role role : kScratch) state -= of(live, role);
  return state;
}

// One letter for each part of the peak: s state, a activations, t temporaries, w workspace. The
// parts are cut at rounded sums, so that the bar is as long as its total.
std::string bar(const LiveBytes& live, std::int64_t peak) {
  const auto columns = [&](std::int64_t bytes) {
    return static_cast<std::size_t>(
        std::llround(static_cast<double>(bytes) * kBarWidth /
                     static_cast<double>(std::max<std::int64_t>(peak, 1))));
  };
  std::string text;
  std::int64_t sum = 0;
  const auto add = [&](std::int64_t bytes, char letter) {
    sum += bytes;
    text.append(columns(sum) - text.size(), letter);
  };
  add(state_of(live), 's');
  add(of(live, Role::activation), 'a');
  add(of(live, Role::temporary), 't');
  add(of(live, Role::workspace), 'w');
  return text;
}

// The fullest position of each of at most `stretches` stretches of the step that are equally long.
std::vector<const Position*> fullest_of_stretches(const MemoryTimeline& timeline,
                                                  std::size_t stretches) {
  const std::size_t count = timeline.positions.size();
  const std::size_t rows = std::min(count, std::max<std::size_t>(stretches, 1));
  std::vector<const Position*> shown;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto begin = timeline.positions.begin() + static_cast<std::ptrdiff_t>(row * count / rows);
    const auto end =
        timeline.positions.begin() + static_cast<std::ptrdiff_t>((row + 1) * count / rows);
    shown.push_back(&*std::max_element(begin, end, [](const Position& a, const Position& b) {
      return total_of(a.live) < total_of(b.live);
    }));
  }
  return shown;
}

std::string share_text(std::int64_t bytes, std::int64_t total) {
  if (total <= 0) return "n/a";
  return fmt::format("{:.1f}%", 100.0 * static_cast<double>(bytes) / static_cast<double>(total));
}

std::string positions_text(const MemoryTimeline& timeline, std::size_t stretches) {
  TextTable table({"step", "phase", "layer", "ops", "state", "activations", "temporaries",
                   "workspace", "alive", "drawn"},
                  "rlllrrrrrl");
  for (const Position* position : fullest_of_stretches(timeline, stretches)) {
    const LiveBytes& live = position->live;
    const bool peak = live.step == timeline.peak_step;
    table.add_row({fmt::format("{}", live.step), position->phase, position->layer, position->ops,
                   bytes_text(state_of(live)), bytes_text(of(live, Role::activation)),
                   bytes_text(of(live, Role::temporary)), bytes_text(of(live, Role::workspace)),
                   bytes_text(total_of(live)),
                   bar(live, timeline.peak_bytes) + (peak ? " peak" : "")});
  }
  return table.text();
}

std::string peak_text(const MemoryTimeline& timeline, std::size_t most) {
  const Position& peak = timeline.positions[static_cast<std::size_t>(timeline.peak_step)];
  std::string text =
      fmt::format("peak: {} at step {} ({} {}, {})\n", bytes_text(timeline.peak_bytes),
                  timeline.peak_step, peak.layer, peak.ops, peak.phase);
  TextTable table({"alive at the peak", "layer", "owner", "steps", "bytes", "share"}, "lllrrr");
  std::int64_t rest = timeline.peak_bytes;
  const std::size_t shown = std::min(most, timeline.at_peak.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const LiveValue& value = timeline.at_peak[i];
    rest -= value.bytes;
    table.add_row({value.name, value.layer, std::string(name_of(value.role)),
                   fmt::format("{}-{}", value.first_step, value.last_step), bytes_text(value.bytes),
                   share_text(value.bytes, timeline.peak_bytes)});
  }
  if (shown < timeline.at_peak.size()) {
    table.add_row({fmt::format("{} more", timeline.at_peak.size() - shown), "", "", "",
                   bytes_text(rest), share_text(rest, timeline.peak_bytes)});
  }
  return text + table.text();
}

Json live_json(const LiveBytes& live) {
  Json roles = Json::object();
  for (int role = 0; role < kRoles; ++role) {
    roles[std::string(name_of(static_cast<Role>(role)))] = of(live, static_cast<Role>(role));
  }
  return roles;
}

}  // namespace

std::string memory_timeline_text(const MemoryTimeline& timeline, std::span<const Reading> readings,
                                 const MemoryTextOptions& options) {
  if (timeline.positions.empty()) return "memory: the plan has no steps\n";
  std::string text = positions_text(timeline, options.stretches);
  if (options.stretches < timeline.positions.size()) {
    text += fmt::format("{} steps; each row is the fullest of its stretch.\n",
                        timeline.positions.size());
  }
  text += fmt::format(
      "drawn, a letter for each {}: s state (weights, gradients, optimizer, batch), a activations, "
      "t temporaries, w workspace\n\n",
      bytes_text(std::max<std::int64_t>(timeline.peak_bytes / kBarWidth, 1)));
  text += peak_text(timeline, options.most);
  text += fmt::format(
      "\nplanned: state {} + scratch arena {} = {}; of the arena at most {} are alive at once, "
      "{} ({}) are gaps between them\n",
      bytes_text(timeline.state_bytes), bytes_text(timeline.scratch_bytes),
      bytes_text(timeline.state_bytes + timeline.scratch_bytes),
      bytes_text(timeline.scratch_live_bytes), bytes_text(timeline.gap_bytes()),
      share_text(timeline.gap_bytes(), timeline.scratch_bytes));
  const std::vector<MeasuredMemory> measured = measured_memory(readings);
  for (const MeasuredMemory& memory : measured) {
    const bool process = memory.sensor == "rss_bytes";
    const std::string low = bytes_text(std::llround(memory.low));
    const std::string high = bytes_text(std::llround(memory.high));
    text += fmt::format(
        "measured: {}: {} in {} reading{}{}\n",
        process ? "resident memory of the whole process" : memory.device + " " + memory.sensor,
        low == high ? low : low + " to " + high, memory.readings, memory.readings == 1 ? "" : "s",
        process ? ", program, libraries and data with it" : "");
  }
  if (measured.empty()) text += "measured: n/a (no reading of memory)\n";
  return text;
}

std::string memory_timeline_json(const MemoryTimeline& timeline,
                                 std::span<const Reading> readings) {
  Json positions = Json::array(), alive = Json::array(), measured = Json::array();
  for (const Position& position : timeline.positions) {
    positions.push_back({{"step", position.live.step},
                         {"layer", position.layer},
                         {"ops", position.ops},
                         {"phase", position.phase},
                         {"bytes", total_of(position.live)},
                         {"by_owner", live_json(position.live)}});
  }
  for (const LiveValue& value : timeline.at_peak) {
    alive.push_back({{"name", value.name},
                     {"layer", value.layer},
                     {"owner", name_of(value.role)},
                     {"bytes", value.bytes},
                     {"first_step", value.first_step},
                     {"last_step", value.last_step}});
  }
  for (const MeasuredMemory& memory : measured_memory(readings)) {
    measured.push_back({{"device", memory.device},
                        {"sensor", memory.sensor},
                        {"low_bytes", memory.low},
                        {"high_bytes", memory.high},
                        {"readings", memory.readings}});
  }
  const bool known = timeline.peak_step >= 0;
  Json document = {{"steps", std::move(positions)},
                   {"peak",
                    {{"step", known ? Json(timeline.peak_step) : Json(nullptr)},
                     {"bytes", known ? Json(timeline.peak_bytes) : Json(nullptr)},
                     {"alive", std::move(alive)}}},
                   {"planned",
                    {{"state_bytes", timeline.state_bytes},
                     {"scratch_bytes", timeline.scratch_bytes},
                     {"scratch_live_bytes", timeline.scratch_live_bytes},
                     {"gap_bytes", timeline.gap_bytes()}}},
                   {"measured", std::move(measured)}};
  return json_text(document);
}

}  // namespace ridgeline
