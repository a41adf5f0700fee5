#include "peers/peer_name.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"

namespace ridgeline {
namespace {

constexpr std::string_view kEager = "eager";
constexpr std::string_view kTorchvision = "torchvision";

std::vector<std::string_view> names_of_peers() {
  std::vector<std::string_view> names;
  for (const PeerInfo& peer : known_peers()) names.push_back(peer.name);
  return names;
}

std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    pieces.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return pieces;
}

}  // namespace

std::span<const PeerInfo> known_peers() {
  using enum Precision;
  static const std::vector<Precision> all = {fp32, tf32, bf16, fp16};
  static const std::array<PeerInfo, 8> peers = {{
      {"torch-cpu",
       "cpu",
       {},
       {fp32, bf16},
       {kEager, "channels_last", "amp", "compile", kTorchvision},
       "apt-get install python3-torch libopenblas0-pthread, or pip install torch numpy"},
      {"torch-cuda",
       "cuda",
       {},
       all,
       {kEager, "channels_last", "amp", "compile", "cuda-graph", kTorchvision},
       "pip install torch numpy, with a CUDA device"},
      {"torch-mps",
       "mps",
       {},
       all,
       {kEager, "channels_last", "amp", "compile", kTorchvision},
       "pip install torch numpy, on a Mac"},
      {"numpy",
       "cpu",
       {"mlp"},
       {fp32},
       {},
       "apt-get install python3-numpy libopenblas0-pthread, or pip install numpy"},
      {"cupy", "cuda", {"mlp"}, {fp32}, {}, "pip install cupy-cuda12x or cupy-cuda13x"},
      {"numba-cpu",
       "cpu",
       {"mnist_cnn", "mlp"},
       {fp32},
       {},
       "apt-get install python3-numba, or pip install numba"},
      {"numba-cuda", "cuda", {"mnist_cnn", "mlp"}, {fp32}, {}, "pip install numba-cuda"},
      {"tensorflow", "cpu", {"mnist_cnn", "mlp"}, {fp32}, {}, "pip install tensorflow"},
  }};
  return peers;
}

std::string PeerInfo::refuse(std::string_view model) const {
  if (models.empty() || std::find(models.begin(), models.end(), model) != models.end()) return {};
  return fmt::format("{} computes {} only", name, joined(models, " and "));
}

std::string PeerInfo::refuse(Precision precision) const {
  std::vector<std::string_view> names;
  for (const Precision each : precisions) {
    if (each == precision) return {};
    names.push_back(name_of(each));
  }
  return fmt::format("{} computes in {}", name, joined(names, " and "));
}

bool is_peer(std::string_view backend) {
  const std::string_view name = pieces_of(backend)[0];
  const std::vector<std::string_view> names = names_of_peers();
  if (std::find(names.begin(), names.end(), name) != names.end()) return true;
  return name.starts_with("torch") || name.starts_with("numba");
}

PeerName parse_peer(std::string_view text) {
  const std::vector<std::string_view> pieces = pieces_of(text);
  const std::vector<std::string_view> names = names_of_peers();
  const auto found = std::find(names.begin(), names.end(), pieces[0]);
  if (found == names.end()) {
    bad_input("unknown peer '{}'{}; known: {}", pieces[0], did_you_mean(pieces[0], names),
              joined(names, ", "));
  }
  PeerName name;
  name.info = &known_peers()[static_cast<std::size_t>(found - names.begin())];
  const std::vector<std::string_view>& known = name.info->options;
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    if (std::find(known.begin(), known.end(), pieces[i]) == known.end()) {
      if (known.empty()) bad_input("{}: {} has no options", text, pieces[0]);
      bad_input("{}: unknown option '{}'{}; {} has {}", text, pieces[i],
                did_you_mean(pieces[i], known), pieces[0], joined(known, ", "));
    }
  }
  const auto asked = [&](std::string_view option) {
    return std::find(pieces.begin() + 1, pieces.end(), option) != pieces.end();
  };
  for (const std::string_view other : {"compile", "cuda-graph"}) {
    if (asked(kEager) && asked(other))
      bad_input("{}: eager and {} cannot be combined", text, other);
  }
  for (const std::string_view option : known) {
    if (option != kEager && asked(option)) name.options.emplace_back(option);
  }
  return name;
}

std::string PeerName::text() const {
  return options.empty() ? backend() : backend() + "+" + joined(options, "+");
}

std::string PeerName::install() const {
  std::string text(info->install);
  if (has(kTorchvision)) {
    text += "; for +torchvision apt-get install python3-torchvision, or pip install torchvision";
  }
  return text;
}

bool PeerName::has(std::string_view option) const {
  return std::find(options.begin(), options.end(), option) != options.end();
}

}  // namespace ridgeline
