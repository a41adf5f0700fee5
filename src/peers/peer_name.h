#pragma once

// Peers are other frameworks that do the same work for comparison. They stand beside the backends
// under names of their own, with options behind a plus: "torch-cuda+amp+channels_last".

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/precision.h"

namespace ridgeline {

struct PeerInfo {
  std::string_view name;                 // "torch-cuda"
  std::string_view device;               // "cpu", "cuda" or "mps"
  std::vector<std::string_view> models;  // that it computes; empty: every network
  std::vector<Precision> precisions;     // that it computes in
  std::vector<std::string_view> options;
  std::string_view install;  // what to do where it is missing

  // Why it does not compute a model, or in a precision; empty: it does.
  [[nodiscard]] std::string refuse(std::string_view model) const;
  [[nodiscard]] std::string refuse(Precision precision) const;
};

[[nodiscard]] std::span<const PeerInfo> known_peers();

// Whether a backend's name means a peer: its part before the first plus is one's name, or looks
// like one ("torch-gpu").
[[nodiscard]] bool is_peer(std::string_view backend);

struct PeerName {
  const PeerInfo* info = nullptr;
  std::vector<std::string> options;  // in the order of info->options, each once

  [[nodiscard]] std::string backend() const { return std::string(info->name); }
  [[nodiscard]] std::string text() const;  // "torch-cuda+channels_last+amp"
  [[nodiscard]] bool has(std::string_view option) const;
  [[nodiscard]] std::string install()
      const;  // what to do where it, or what its options need, is missing
};

// Throws bad_input for an unknown peer or option, with the known ones, and for options that exclude
// each other.
[[nodiscard]] PeerName parse_peer(std::string_view text);

}  // namespace ridgeline
