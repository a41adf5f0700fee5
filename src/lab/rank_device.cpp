#include "lab/rank_device.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "backends/nccl/backend.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"

namespace ridgeline {
namespace {

bool may_share() {
  const char* value = std::getenv(kShareGpu);
  return value != nullptr && std::string_view(value) == "1";
}

// The GPUs of this machine that this process sees are those from `first` on.
int index_for(int first, const Ranks& ranks) {
  const auto there = static_cast<int>(cuda_devices().size());
  const int wanted = first + ranks.local_rank();
  if (wanted < there) return wanted;
  if (may_share() && there > first) return first + ranks.local_rank() % (there - first);
  // A launcher may show each rank a GPU of its own.
  if (there == 1 && first == 0) return 0;
  if (there <= first) return first;  // make_device says what is wrong with it
  bad_input("{} ranks of a machine that has {} GPU{}: each rank needs one", ranks.local_size(),
            there,
            first > 0    ? fmt::format(" from cuda:{} on", first)
            : there == 1 ? ""
                         : "s");
}

// NCCL takes ranks that share a GPU for machines that are joined by a network.
void set_up_sharing(const Ranks& ranks) {
  constexpr int kKeep = 0;
  (void)setenv("NCCL_HOSTID", fmt::format("ridgeline-{}", ranks.rank()).c_str(), kKeep);
  if (ranks.nodes() == 1) (void)setenv("NCCL_SOCKET_IFNAME", "lo", kKeep);
}

std::string name_for(const std::string& device, const Ranks& ranks) {
  const std::string kind = device_kind(device);
  if (kind == "cpu") return device;
  if (kind != "cuda") bad_input("--device {}: ranks work on cpu and cuda", device);
  if (const std::string reason = cuda_unavailable(); !reason.empty()) {
    bad_input("--device {} cannot be used: {}", device, reason);
  }
  if (const std::string reason = nccl::unavailable(); !reason.empty()) {
    bad_input("--device {}: GPUs of several ranks need NCCL: {}", device, reason);
  }
  const std::string name = device_name(device);
  const int first = number_in<int>(std::string_view(name).substr(kind.size() + 1)).value_or(-1);
  if (first < 0) return name;  // make_device says so
  return fmt::format("cuda:{}", index_for(first, ranks));
}

// What a rank tells the others: the kind of its device, which one it is, or what is wrong.
struct Place {
  std::string kind, gpu, error;
};

Place place_of(const std::string& device, const Ranks& ranks, std::string& name) {
  Place place{.kind = device_kind(device), .gpu = {}, .error = {}};
  try {
    name = name_for(device, ranks);
    if (place.kind == "cuda") place.gpu = make_device(name)->unique_id();
  } catch (const Error& error) {
    place.error = error.what();
  }
  return place;
}

// Throws what is wrong with the first of those that have trouble.
void check_places(const std::vector<Place>& places, const std::string& device) {
  std::map<std::string, std::size_t> taken;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const Place& place = places[rank];
    if (!place.error.empty()) {
      const bool all = std::all_of(places.begin(), places.end(),
                                   [&](const Place& other) { return other.error == place.error; });
      bad_input("{}", all ? place.error : fmt::format("rank {}: {}", rank, place.error));
    }
    if (place.kind != places[0].kind) {
      bad_input("rank {} differs from rank 0: device: {}, and on rank 0 {}", rank, place.kind,
                places[0].kind);
    }
    if (place.gpu.empty() || may_share()) continue;
    const auto [first, is_new] = taken.try_emplace(place.gpu, rank);
    if (is_new) continue;
    bad_input("--device {}: ranks {} and {} would share a GPU; each rank needs one of its own",
              device, first->second, rank);
  }
}

}  // namespace

std::string device_of_rank(const std::string& device, Ranks& ranks) {
  std::string name;
  const Place own = place_of(device, ranks, name);
  std::vector<Place> places;
  for (const std::string& text : ranks.gather(own.kind + '\n' + own.gpu + '\n' + own.error)) {
    const auto pieces = pieces_of(text, "\n");
    Place& place = places.emplace_back();
    place.kind = pieces[0];
    place.gpu = pieces[1];
    place.error = text.substr(place.kind.size() + place.gpu.size() + 2);
  }
  try {
    check_places(places, device);
  } catch (const Error&) {
    ranks.end_together();
    throw;
  }
  if (own.kind != "cuda") return name;
  if (may_share()) set_up_sharing(ranks);
  ranks.add_transport(nccl::version_text());
  return name;
}

std::unique_ptr<Device> make_rank_device(const std::string& name) {
  std::unique_ptr<Device> device = make_device(name);
  if (device->kind() == "cuda") nccl::watch_over(*device);
  return device;
}

std::string rank_device_note(const std::string& device) {
  if (device_kind(device) != "cuda" || nccl::can_be_recorded()) return {};
  return fmt::format(
      "note: {} cannot be part of a CUDA graph, as it is from 2.9 on: steps are launched kernel by "
      "kernel",
      nccl::version_text());
}

}  // namespace ridgeline
