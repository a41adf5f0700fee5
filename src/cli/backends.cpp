// ridgeline backends: backends and peers, and why some are not available.

#include <nlohmann/json.hpp>

#include "backends/auto.h"
#include "backends/registry.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/tables.h"
#include "devices/device.h"
#include "peers/peer.h"

namespace ridgeline::cli {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kBackendColumns = {"name",    "kind",    "device",       "available",
                                                  "version", "kernels", "completed by", "reason"};

struct BackendsOptions {
  bool json = false, start_peers = false;
};

// The backends that run the ops that a backend lacks.
std::string completion_of(const Backend& backend) {
  std::string names;
  for (const Backend* provider : providers_of(backend.name)) {
    if (provider != &backend) names += (names.empty() ? "" : ", ") + std::string(provider->name);
  }
  return names;
}

std::string missing_device(const PeerInfo& peer) {
  if (peer.device == "cuda") return cuda_unavailable();
#ifndef __APPLE__
  if (peer.device == "mps") return "only a Mac has an MPS device";
#endif
  return {};
}

// Starting a peer takes seconds: without `start` only its modules are looked for.
std::vector<PeerAvailability> peers_here(bool start) {
  std::map<std::string, PeerAvailability> installed;
  if (!start) installed = installed_peers();
  std::vector<PeerAvailability> found;
  for (const PeerInfo& peer : known_peers()) {
    if (const std::string reason = missing_device(peer); !reason.empty()) {
      found.push_back({.available = false, .reason = reason, .python = {}, .versions = {}});
    } else if (start) {
      found.push_back(peer_availability(parse_peer(peer.name)));
    } else {
      found.push_back(installed[std::string(peer.name)]);
      if (!found.back().available) {
        found.back().reason += fmt::format("; to install: {}", peer.install);
      }
    }
  }
  return found;
}

std::string versions_text(const PeerAvailability& peer) {
  std::vector<std::string> texts;
  for (const auto& [name, version] : peer.versions) {
    texts.push_back(peer.versions.size() == 1 ? version : name + ' ' + version);
  }
  return joined(texts, ", ");
}

int run_backends(const BackendsOptions& options) {
  Json backends = Json::array(), peers = Json::array();
  TextTable table(kBackendColumns, "lllllrll");
  table.important({"name", "kind", "device", "available", "reason", "version"});
  for (const Backend* backend : all_backends()) {
    const std::string reason = backend->unavailable();
    const bool available = reason.empty();
    const std::string version = available ? backend->version() : "";
    const std::string completion = available ? completion_of(*backend) : "";
    const std::size_t rows = available ? backend->rows().size() : 0;
    backends.push_back({{"name", backend->name},
                        {"device", backend->device},
                        {"available", available},
                        {"reason", reason},
                        {"version", version},
                        {"kernel_rows", rows},
                        {"completed_by", completion}});
    table.add_row({std::string(backend->name), "backend", std::string(backend->device),
                   available ? "yes" : "no", version, fmt::format("{}", rows), completion, reason});
  }
  const std::vector<PeerAvailability> found = peers_here(options.start_peers);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const PeerInfo& peer = known_peers()[i];
    peers.push_back({{"name", peer.name},
                     {"device", peer.device},
                     {"available", found[i].available},
                     {"started", options.start_peers},
                     {"reason", found[i].reason},
                     {"versions", found[i].versions},
                     {"python", found[i].python},
                     {"install", peer.install}});
    table.add_row({std::string(peer.name), "peer", std::string(peer.device),
                   found[i].available ? "yes" : "no", versions_text(found[i]), "", "",
                   found[i].reason});
  }
  if (options.json) {
    print(json_document(Json{{"backends", std::move(backends)}, {"peers", std::move(peers)}}));
    return 0;
  }
  std::string text;
  if (!options.start_peers) {
    text += "\nPeers were not started, only looked for; --start-peers starts each to be sure.\n";
  }
  text += fmt::format(
      "\n--backend auto measures the backends and uses the fastest one for each step. It keeps its "
      "choices in {}\n",
      default_choice_cache().string());
  print(shown_main(table) + fitted(text));
  return 0;
}

}  // namespace

void add_backends(Parser& program, Action& action) {
  auto options = std::make_shared<BackendsOptions>();
  Parser* command = program.add_subcommand(
      "backends", "List the backends and peers, and why some are not available");
  add_json_option(*command, options->json);
  add_table_options(*command, kBackendColumns);
  command->add_flag("--start-peers", options->start_peers,
                    "Start each peer to see whether it works; takes seconds");
  command->examples({"ridgeline backends", "ridgeline backends --start-peers"});
  command->callback([options, &action] { action = [options] { return run_backends(*options); }; });
}

}  // namespace ridgeline::cli
