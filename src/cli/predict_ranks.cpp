#include "cli/predict_ranks.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json_text.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/tables.h"
#include "lab/options.h"

namespace ridgeline::cli {
namespace {

using nlohmann::ordered_json;
using predict::RankPrediction;
using predict::Scaling;

constexpr int kMostRanks = 65536;
constexpr const char* kMeasured = "measured";

// All-reduces that were timed on one machine.
std::vector<Ceiling> stored_links(const Store& store) {
  std::vector<Ceiling> links;
  std::set<std::vector<std::string>> machines;
  for (const EnvironmentRecord& environment : store.environments()) {
    for (const Ceiling& ceiling : store.ceilings(environment.key)) {
      if (!ceiling.device.starts_with("ranks:")) continue;
      links.push_back(ceiling);
      machines.insert(environment.machine());
    }
  }
  if (machines.size() > 1) {
    bad_input("--network measured: the store has links of {} machines; name a store of one",
              machines.size());
  }
  return links;
}

std::string percent_range(const predict::Range& range) {
  return fmt::format("{:.0f} - {:.0f}", 100.0 * range.low, 100.0 * range.high);
}

}  // namespace

void add_rank_options(Parser& command, RankOptions& options) {
  command.heading("Ranks");
  command
      .add_option("--ranks LIST", options.ranks,
                  "Numbers of ranks that share training steps, such as 8,64,512")
      ->delimiter(',');
  command.add_option("--network NAME", options.network,
                     "Link between the machines: a name of hardware/networks.toml, such as "
                     "'InfiniBand NDR'; a .toml file of that form; or measured, for the links in "
                     "the store");
  command.add_option("--ranks-per-node N", options.ranks_per_node,
                     "Ranks of one machine, which --node-network joins");
  command.add_option("--node-network NAME", options.node_network,
                     "Link between the ranks of one machine: a name or a .toml file");
  command
      .add_option("--scaling LIST", options.scalings,
                  "weak gives each rank --batch samples, strong divides them among the ranks "
                  "[default: both]")
      ->delimiter(',')
      ->values({"weak", "strong"});
}

std::vector<int> rank_counts(const RankOptions& options) {
  std::vector<int> counts;
  for (const std::string& text : options.ranks) {
    counts.push_back(number_in<int>(text).value_or(0));
    if (counts.back() < 1 || counts.back() > kMostRanks) {
      bad_input("--ranks '{}': expected numbers from 1 to {}", text, kMostRanks);
    }
  }
  const bool described = !options.network.empty() || !options.node_network.empty() ||
                         options.ranks_per_node != 1 || !options.scalings.empty();
  if (counts.empty() && described) {
    bad_input("--network, --node-network, --ranks-per-node and --scaling need --ranks");
  }
  if (!counts.empty() && options.network.empty()) {
    bad_input("--ranks needs --network, such as --network 'InfiniBand NDR'");
  }
  return counts;
}

predict::Network network_of(const RankOptions& options, const KnownHardware& known,
                            const Store* store) {
  if (options.ranks_per_node < 1 || options.ranks_per_node > kMostRanks) {
    bad_input("--ranks-per-node {}: must be from 1 to {}", options.ranks_per_node, kMostRanks);
  }
  if ((options.ranks_per_node > 1) != !options.node_network.empty()) {
    bad_input(
        "--ranks-per-node and --node-network go together: how many ranks a machine has, and "
        "what joins them");
  }
  if (options.network == kMeasured) {
    if (!options.node_network.empty()) {
      bad_input("--network measured: its links are those of one machine, without --node-network");
    }
    return predict::Network(store == nullptr ? std::vector<Ceiling>() : stored_links(*store));
  }
  std::optional<predict::Link> within;
  if (!options.node_network.empty()) {
    within = predict::link_named(known, options.node_network);
  }
  return {predict::link_named(known, options.network), std::move(within),
          static_cast<int>(options.ranks_per_node)};
}

std::vector<Scaling> scalings_of(const RankOptions& options) {
  if (options.scalings.empty()) return {Scaling::weak, Scaling::strong};
  static constexpr std::array<std::string_view, 2> kNames = {"weak", "strong"};
  std::vector<Scaling> scalings;
  for (const std::string& name : options.scalings) {
    scalings.push_back(choice_of("--scaling", name, kNames) == 0 ? Scaling::weak : Scaling::strong);
  }
  return scalings;
}

std::string ranks_text(const RankView& view) {
  TextTable table({"network", "precision", "on", "scaling", "ranks", "machines", "batch of a rank",
                   "step ms", "range ms", "img/s", "exchange ms", "not hidden ms", "efficiency %",
                   "range %", "links", "stands on"},
                  "llllrrrrrrrrrrll");
  table.important({"network", "on", "scaling", "ranks", "step ms", "efficiency %", "range %",
                   "batch of a rank", "not hidden ms", "exchange ms", "range ms", "img/s",
                   "precision", "machines", "links", "stands on"});
  for (const RankPrediction& row : view.rows) {
    table.add_row({fmt::format("{} {}", row.one.model, row.one.image), row.one.precision,
                   row.one.target.name, std::string(name_of(row.scaling)),
                   fmt::format("{}", row.ranks), fmt::format("{}", row.nodes),
                   fmt::format("{}", row.rank_batch), fmt::format("{:.4g}", row.seconds * 1e3),
                   fmt::format("{:.3g} - {:.3g}", row.range.low * 1e3, row.range.high * 1e3),
                   fmt::format("{:.4g}", row.samples_per_second()),
                   fmt::format("{:.3g}", row.exchange_seconds * 1e3),
                   fmt::format("{:.3g}", row.exposed_seconds * 1e3),
                   fmt::format("{:.0f}", 100.0 * row.efficiency),
                   percent_range(row.efficiency_range), row.network, row.one.basis});
  }
  std::string text = view.rows.empty() ? "" : shown(table);
  if (!view.rows.empty()) {
    text +=
        "\nweak: each rank computes the batch; strong: all ranks share it. Efficiency: samples per "
        "second, divided by those of one rank alone times the number of ranks. Its range comes "
        "from the links, which may be slower than their data sheets, and from the range of one "
        "rank's step.\n";
  }
  for (const std::string& reason : view.refused) text += "refused: " + reason + "\n";
  return fitted(text);
}

std::string ranks_json(const RankView& view) {
  ordered_json rows = ordered_json::array();
  for (const RankPrediction& row : view.rows) {
    rows.push_back({{"model", row.one.model},
                    {"image", row.one.image},
                    {"precision", row.one.precision},
                    {"target", row.one.target.name},
                    {"backend", row.one.backend},
                    {"network", row.network},
                    {"scaling", name_of(row.scaling)},
                    {"ranks", row.ranks},
                    {"nodes", row.nodes},
                    {"rank_batch", row.rank_batch},
                    {"rank_step_ms", row.one.seconds * 1e3},
                    {"step_ms", row.seconds * 1e3},
                    {"low_ms", row.range.low * 1e3},
                    {"high_ms", row.range.high * 1e3},
                    {"samples_per_second", row.samples_per_second()},
                    {"exchange_bytes", row.exchange_bytes},
                    {"exchange_ms", row.exchange_seconds * 1e3},
                    {"exposed_ms", row.exposed_seconds * 1e3},
                    {"efficiency", row.efficiency},
                    {"efficiency_low", row.efficiency_range.low},
                    {"efficiency_high", row.efficiency_range.high},
                    {"basis", row.one.basis}});
  }
  return json_document(ordered_json{{"ranks", std::move(rows)}, {"refused", view.refused}});
}

std::string ranks_csv(const RankView& view) {
  std::string text =
      "model,image,precision,target,backend,network,scaling,ranks,nodes,rank_batch,rank_step_ms,"
      "step_ms,low_ms,high_ms,samples_per_second,exchange_bytes,exchange_ms,exposed_ms,efficiency,"
      "efficiency_low,efficiency_high,basis\n";
  for (const RankPrediction& row : view.rows) {
    text += csv_line(row.one.model, row.one.image, row.one.precision, row.one.target.name,
                     row.one.backend, row.network, name_of(row.scaling), row.ranks, row.nodes,
                     row.rank_batch, row.one.seconds * 1e3, row.seconds * 1e3, row.range.low * 1e3,
                     row.range.high * 1e3, row.samples_per_second(), row.exchange_bytes,
                     row.exchange_seconds * 1e3, row.exposed_seconds * 1e3, row.efficiency,
                     row.efficiency_range.low, row.efficiency_range.high, row.one.basis);
  }
  return text;
}

}  // namespace ridgeline::cli
