#pragma once

// ridgeline predict --ranks: steps that several ranks share.

#include <string>
#include <vector>

#include "predict/ranks.h"
#include "store/store.h"

namespace ridgeline::cli {

class Parser;

struct RankOptions {
  std::vector<std::string> ranks, scalings;
  std::string network, node_network;
  std::int64_t ranks_per_node = 1;
};
void add_rank_options(Parser& command, RankOptions& options);

// Throws bad_input for what does not fit together.
[[nodiscard]] std::vector<int> rank_counts(const RankOptions& options);
[[nodiscard]] predict::Network network_of(const RankOptions& options, const KnownHardware& known,
                                          const Store* store);
[[nodiscard]] std::vector<predict::Scaling> scalings_of(const RankOptions& options);

struct RankView {
  std::vector<predict::RankPrediction> rows;
  std::vector<std::string> refused;  // why combinations have no row, one sentence each
};
[[nodiscard]] std::string ranks_text(const RankView& view);
[[nodiscard]] std::string ranks_json(const RankView& view);
[[nodiscard]] std::string ranks_csv(const RankView& view);

}  // namespace ridgeline::cli
