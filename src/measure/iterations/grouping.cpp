#include "measure/iterations/grouping.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline {
namespace {

constexpr double kUsableShare = 0.9;  // libraries and the rest of the system need some, too

using BytesByDevice = std::map<std::string, std::int64_t>;

void add(BytesByDevice& bytes, const Subject& subject) {
  bytes[subject.executor.device] += subject.needed_bytes.value_or(0);
}

}  // namespace

MemoryGroups group_by_memory(
    std::span<const Subject> subjects,
    const std::function<std::int64_t(const std::string& device)>& available) {
  BytesByDevice room;
  for (const Subject& subject : subjects) {
    const std::string& device = subject.executor.device;
    if (!room.contains(device)) {
      room[device] =
          static_cast<std::int64_t>(kUsableShare * static_cast<double>(available(device)));
    }
  }
  const auto fit = [&](const BytesByDevice& bytes) {
    return std::all_of(bytes.begin(), bytes.end(),
                       [&](const auto& each) { return each.second <= room.at(each.first); });
  };
  MemoryGroups result;
  BytesByDevice used;
  bool set_was_split = false;
  for (std::size_t first = 0; first < subjects.size();) {
    std::size_t last = first;
    BytesByDevice of_set;
    while (last < subjects.size() && subjects[last].work == subjects[first].work) {
      add(of_set, subjects[last++]);
    }
    // A set that would be torn apart begins a group of its own.
    BytesByDevice with_set = used;
    for (const auto& [device, bytes] : of_set) with_set[device] += bytes;
    bool fresh = result.groups.empty() || !fit(with_set);
    for (std::size_t i = first; i < last; ++i) {
      BytesByDevice with = used;
      add(with, subjects[i]);
      if (!fresh && !fit(with)) {
        fresh = true;
        set_was_split = true;
      }
      if (fresh) {
        result.groups.emplace_back();
        used.clear();
        with.clear();
        add(with, subjects[i]);
      }
      fresh = false;
      result.groups.back().push_back(i);
      used = std::move(with);
    }
    first = last;
  }
  if (result.groups.size() > 1) {
    std::string rooms;
    for (const auto& [device, bytes] : room) {
      rooms += fmt::format("{}{} on {}", rooms.empty() ? "" : ", ", bytes_text(bytes), device);
    }
    result.note = fmt::format(
        "memory ({}) is too small for all {} configurations at once: measured in {} groups, one "
        "after another{}",
        rooms, subjects.size(), result.groups.size(),
        set_was_split ? "; even backends of one configuration are not side by side" : "");
  }
  return result;
}

}  // namespace ridgeline
