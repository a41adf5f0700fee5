#pragma once

// Runs put together by what they did and where.

#include <map>
#include <string>
#include <vector>

#include "report/data.h"

namespace ridgeline::report {

// Runs of the same work, in the order of the first of each.
[[nodiscard]] std::vector<Runs> by_work(const Runs& runs);

// Whether an axis is a property of the networks, which differ in more than that.
[[nodiscard]] bool is_of_networks(const std::string& axis);
// The run without the fields that go with an axis: of networks all that makes the network, with
// full batches both the batch and the samples. Runs that differ by the axis alone are equal then.
[[nodiscard]] RunView off_axis(const RunView& run, const std::string& axis);

// A machine's processor or one of its graphics processors.
struct Place {
  std::size_t machine = 0;
  std::string device;
  auto operator<=>(const Place&) const = default;
};
[[nodiscard]] Place place_of(const RunView& run);
// "server cuda:0"; the machine alone where it has one device in the data, the device alone where
// there is one machine.
[[nodiscard]] std::string place_text(const Data& data, const Place& place);

// Below this share of the nearest roof it is not the roof that limits a run.
inline constexpr double kFarFromRoofs = 0.10;
[[nodiscard]] bool is_far_from_roofs(const RooflinePoint& point);

// The fastest of runs of the same work.
[[nodiscard]] const RunView* fastest_of(const Runs& runs);

}  // namespace ridgeline::report
