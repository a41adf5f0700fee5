// From the lists of the options to single configurations.

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "backends/registry.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/text.h"
#include "devices/device.h"
#include "lab/bench_matrix.h"
#include "onnx/network.h"
#include "peers/peer_name.h"

namespace ridgeline {
namespace {

std::vector<std::string> list_of(const char* option, const std::string& list) {
  std::vector<std::string> items;
  std::set<std::string> seen;
  for (const std::string_view piece : pieces_of(list, ",")) {
    items.emplace_back(piece);
    if (items.back().empty() && !list.empty()) {
      bad_input("{} '{}': an entry between the commas is empty", option, list);
    }
    if (!seen.insert(items.back()).second) bad_input("{}: {} is named twice", option, items.back());
  }
  return items;
}

std::vector<std::string> numbers_of(const char* option, const std::string& list,
                                    const char* other) {
  std::vector<std::string> items = list_of(option, list);
  for (const std::string& item : items) {
    if (item.empty() || item == other) continue;
    if (number_in<std::int32_t>(item).value_or(0) < 1) {
      bad_input("{} {}: must be a whole number from 1 to {}{}", option, item,
                std::numeric_limits<std::int32_t>::max(),
                *other == '\0' ? "" : fmt::format(", or {}", other));
    }
  }
  return items;
}

// Known at all; whether it can be used here shows later, for each configuration.
void check_backend(const std::string& name) {
  if (name.empty()) return;
  if (is_peer(name)) {
    (void)parse_peer(name);
    return;
  }
  std::vector<std::string_view> known = backend_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  for (const PeerInfo& peer : known_peers()) known.push_back(peer.name);
  bad_input("unknown backend '{}'{}", name, known_names(name, known));
}

// "auto@cuda:0": a backend on a device of its own. Takes the device off the name.
std::string own_device(std::string& backend) {
  const std::size_t at = backend.find('@');
  if (at == std::string::npos) return {};
  std::string device = backend.substr(at + 1);
  if (device.empty()) bad_input("--backend {}: the device after the @ is missing", backend);
  backend.erase(at);
  return device;
}

// Where a backend computes when nothing was said.
std::string usual_device(const std::string& backend) {
  if (is_peer(backend)) return device_name(parse_peer(backend).info->device);
  const Backend* known = find_backend(backend);
  return known == nullptr ? "cpu" : device_name(known->device);
}

// Each one of `all` with each of the values.
void cross(std::vector<Combination>& all, std::string Combination::*field,
           const std::vector<std::string>& values) {
  std::vector<Combination> crossed;
  for (const Combination& each : all) {
    for (const std::string& value : values) {
      crossed.push_back(each);
      crossed.back().*field = value;
    }
  }
  all = std::move(crossed);
}

// With those that exchange nothing where they are asked for.
std::vector<std::string> ranks_of(const BenchAxes& axes, const BenchWork& work) {
  std::vector<std::string> counts = numbers_of("--ranks", axes.ranks, "");
  const bool several = counts != std::vector<std::string>{"1"};
  if (several && work.inference) bad_input("--ranks is for training steps, not for --inference");
  if (several && work.loader) {
    bad_input("--ranks {}: cannot be combined with --loader, which measures one process",
              axes.ranks);
  }
  if (!work.ranks.unconnected) return counts;
  std::vector<std::string> all;
  for (const std::string& count : counts) {
    all.push_back(count);
    if (count != "1") all.push_back(fmt::format("{} {}", count, kUnconnected));
  }
  return all;
}

}  // namespace

int Combination::rank_count() const { return std::stoi(ranks); }

bool Combination::connected() const { return ranks.find(kUnconnected) == std::string::npos; }

std::string Combination::text() const {
  std::string words = model;
  if (!image.empty()) words += ", image " + image;
  if (!samples.empty()) words += ", " + samples + " samples";
  words += fmt::format(", batch {}, {}", batch, precision);
  if (!optimizer.empty()) words += ", " + optimizer;
  words += fmt::format(", {} on {}", backend, device);
  return ranks == "1" ? words
                      : words + fmt::format(", {} ranks{}", rank_count(),
                                            connected() ? "" : ", unconnected");
}

std::vector<Combination> combinations(const BenchAxes& axes, const BenchWork& work) {
  const bool inference = work.inference;
  static constexpr std::array<std::string_view, 3> kOptimizers = {"sgd", "adam", "adamw"};
  const auto models = list_of("--model", axes.models);
  for (const std::string& model : models) (void)onnx::named_config(model);
  const auto backends = list_of("--backend", axes.backends);
  for (std::string backend : backends) {
    const std::string device = own_device(backend);
    if (!device.empty() && !axes.devices.empty()) {
      bad_input("--backend {}@{}: names a device, so --device cannot be used as well", backend,
                device);
    }
    check_backend(backend);
  }
  const auto precisions = list_of("--precision", axes.precisions);
  for (const std::string& precision : precisions) {
    (void)choice_of("--precision", precision, kPrecisionNames);
  }
  const auto images = list_of("--image", axes.images);
  for (const std::string& image : images) {
    if (!image.empty()) (void)parse_image(image, 3);
  }
  auto optimizers = list_of("--optimizer", axes.optimizers);
  for (const std::string& name : optimizers) (void)choice_of("--optimizer", name, kOptimizers);
  if (inference) optimizers = {""};
  auto batches = numbers_of("--batch", axes.batches, "full");
  // Latency is that of one image.
  if (inference && std::find(batches.begin(), batches.end(), "1") == batches.end()) {
    batches.insert(batches.begin(), "1");
  }

  // What comes last varies fastest: those who do the same work stand side by side.
  std::vector<Combination> all(1);
  cross(all, &Combination::model, models);
  cross(all, &Combination::image, images);
  cross(all, &Combination::samples, numbers_of("--samples", axes.samples, ""));
  cross(all, &Combination::batch, batches);
  cross(all, &Combination::precision, precisions);
  cross(all, &Combination::optimizer, optimizers);
  cross(all, &Combination::device, list_of("--device", axes.devices));
  cross(all, &Combination::backend, backends);
  cross(all, &Combination::ranks, ranks_of(axes, work));
  for (Combination& each : all) {
    if (const std::string device = own_device(each.backend); !device.empty()) each.device = device;
    if (each.device.empty()) each.device = usual_device(each.backend);
    if (each.backend.empty()) {
      // Ranks do not measure to choose kernels; what they are compared with does not either.
      const std::string kind = device_kind(each.device);
      each.backend = axes.ranks == "1" ? default_backend(kind) : own_backend(kind);
    }
    each.number = static_cast<std::size_t>(&each - all.data());
  }
  return all;
}

}  // namespace ridgeline
