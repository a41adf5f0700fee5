#pragma once

// What joins ranks, and how long an exchange of gradients takes on it: links of data sheets
// (hardware/networks.toml), of the user's file, or those that a store holds of a machine.

#include <optional>
#include <string>
#include <vector>

#include "measure/ceilings/hardware.h"
#include "store/records.h"

namespace ridgeline::predict {

using Link = KnownLink;

// A link by its name, or the only one of a .toml file. Throws bad_input with the nearest names.
[[nodiscard]] Link link_named(const KnownHardware& known, const std::string& written);

// What share of a link's rate all-reduces reach, at the least, usually and at most.
struct LinkShare {
  double least = 0.0, usual = 0.0, most = 0.0;
};
[[nodiscard]] LinkShare share_of(const Link& link);

// Ranks joined by links: machines with so many ranks each, which have a link among themselves.
class Network {
 public:
  // `within` joins the ranks of one machine; nothing: every rank is a machine by itself.
  Network(Link between, std::optional<Link> within, int ranks_of_node);
  // From ceilings of devices "ranks:N": all-reduces of several sizes, as they were timed. Throws
  // bad_input where there are none.
  explicit Network(const std::vector<Ceiling>& ceilings);

  [[nodiscard]] int nodes(int ranks) const;
  // Of an all-reduce of so many bytes. `place`: 0 at the least share of the links, 1 the usual, 2
  // the most. The faster of a ring and a tree counts, as libraries choose; with machines of several
  // ranks, sums are made within each, between them, and handed back.
  [[nodiscard]] double seconds(double bytes, int ranks, int place) const;
  // Whether it goes through memory that the ranks compute with as well.
  [[nodiscard]] bool within_one_node(int ranks) const { return nodes(ranks) == 1; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  struct Timed {
    double bytes, low, usual, high;  // seconds
  };
  [[nodiscard]] double timed(double bytes, int place) const;

  Link between_;
  std::optional<Link> within_;
  int ranks_of_node_ = 1;
  std::vector<Timed> timed_;  // of `timed_ranks_`, the smallest message first
  int timed_ranks_ = 0;
  std::string name_;
};

// Of a ring and a tree, the faster one.
[[nodiscard]] double all_reduce_seconds(double bytes, int ranks, double bytes_per_second,
                                        double latency_seconds);

}  // namespace ridgeline::predict
