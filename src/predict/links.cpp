#include "predict/links.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/text_file.h"
#include "predict/target.h"

namespace ridgeline::predict {
namespace {

constexpr std::string_view kRanks = "ranks:";
// Of the data sheet's rate: what is told of large all-reduces on such links goes from half of it to
// nearly all (docs/predict.md).
constexpr LinkShare kSheetShare = {0.5, 0.8, 0.95};
// A measured rate is what was reached.
constexpr LinkShare kMeasuredShare = {0.85, 1.0, 1.0};

double log2_of(int ranks) { return std::ceil(std::log2(static_cast<double>(ranks))); }

double share_at(const Link& link, int place) {
  const LinkShare share = share_of(link);
  return place == 0 ? share.least : place == 1 ? share.usual : share.most;
}

double on_link(const Link& link, double bytes, int ranks, int place) {
  return all_reduce_seconds(bytes, ranks, link.bytes_per_second * share_at(link, place),
                            link.latency_seconds);
}

}  // namespace

LinkShare share_of(const Link& link) { return link.measured ? kMeasuredShare : kSheetShare; }

double all_reduce_seconds(double bytes, int ranks, double bytes_per_second,
                          double latency_seconds) {
  if (ranks < 2) return 0.0;
  const auto many = static_cast<double>(ranks);
  const double ring = 2.0 * (many - 1.0) * (latency_seconds + bytes / many / bytes_per_second);
  const double tree = 2.0 * (log2_of(ranks) * latency_seconds + bytes / bytes_per_second);
  return std::min(ring, tree);
}

Link link_named(const KnownHardware& known, const std::string& written) {
  if (written.ends_with(".toml")) {
    KnownHardware file;
    parse_hardware(read_text(written), written, file);
    if (file.links.size() != 1) {
      bad_input("{}: must have one [[link]], not {}", written, file.links.size());
    }
    return file.links.front();
  }
  const std::string wanted = letters_of(written);
  std::vector<std::string_view> names;
  std::vector<const Link*> parts;  // "NDR" is "InfiniBand NDR", where no other link is
  for (const Link& link : known.links) {
    const std::string name = letters_of(link.name);
    if (name == wanted) return link;
    if (wanted.size() > 1 && name.find(wanted) != std::string::npos) parts.push_back(&link);
    names.push_back(link.name);
  }
  if (parts.size() == 1) return *parts.front();
  bad_input("'{}': no such network{}; known: {}, measured; or give a .toml file with one [[link]]",
            written, did_you_mean(written, names), joined(names, ", "));
}

Network::Network(Link between, std::optional<Link> within, int ranks_of_node)
    : between_(std::move(between)), within_(std::move(within)), ranks_of_node_(ranks_of_node) {
  name_ = between_.name;
  if (within_ && ranks_of_node_ > 1) {
    name_ += fmt::format(", {} ranks a machine on {}", ranks_of_node_, within_->name);
  }
}

Network::Network(const std::vector<Ceiling>& ceilings) {
  std::map<int, std::vector<Timed>> by_ranks;
  for (const Ceiling& one : ceilings) {
    if (!one.device.starts_with(kRanks) || one.kind != "latency" || one.capacity_bytes <= 0) {
      continue;
    }
    const auto ranks = number_in<int>(one.device.substr(kRanks.size()));
    if (!ranks || *ranks < 2) continue;
    by_ranks[*ranks].push_back(
        {static_cast<double>(one.capacity_bytes), one.low, one.value, one.high});
  }
  if (by_ranks.empty()) {
    bad_input(
        "--network measured: the store has no links between ranks; 'ridgeline env --measure "
        "--ranks 2' measures them");
  }
  timed_ranks_ = by_ranks.rbegin()->first;
  timed_ = by_ranks.rbegin()->second;
  std::ranges::sort(timed_, {}, &Timed::bytes);
  // Other numbers of ranks: a link that would have given the same times.
  const double many = timed_ranks_, ring = 2.0 * (many - 1.0) / many;
  between_.name = fmt::format("measured between {} ranks", timed_ranks_);
  between_.latency_seconds = timed_.front().usual / (2.0 * log2_of(timed_ranks_));
  between_.bytes_per_second = ring * timed_.back().bytes / timed_.back().usual;
  between_.measured = true;
  name_ = between_.name;
  // All on the machine that was measured.
  ranks_of_node_ = timed_ranks_;
  within_ = between_;
}

int Network::nodes(int ranks) const { return (ranks + ranks_of_node_ - 1) / ranks_of_node_; }

// Between the sizes that were measured, straight lines; beyond the largest, its rate.
double Network::timed(double bytes, int place) const {
  const auto at = [&](const Timed& one) {
    return place == 0 ? one.high : place == 1 ? one.usual : one.low;
  };
  const Timed* before = nullptr;
  for (const Timed& one : timed_) {
    if (bytes <= one.bytes) {
      if (before == nullptr) return at(one);
      const double share = (bytes - before->bytes) / (one.bytes - before->bytes);
      return at(*before) + share * (at(one) - at(*before));
    }
    before = &one;
  }
  return at(*before) * bytes / before->bytes;
}

double Network::seconds(double bytes, int ranks, int place) const {
  if (ranks < 2) return 0.0;
  if (ranks == timed_ranks_) return timed(bytes, place);
  const int machines = nodes(ranks), each = std::min(ranks, ranks_of_node_);
  if (each == 1 || !within_) return on_link(between_, bytes, ranks, place);
  if (machines == 1) return on_link(*within_, bytes, ranks, place);
  // Within: each rank gets the sum of its part, and hands it round in the end: a ring's two halves.
  const auto many = static_cast<double>(each);
  const double rate = within_->bytes_per_second * share_at(*within_, place);
  const double halves = 2.0 * (many - 1.0) * (within_->latency_seconds + bytes / many / rate);
  return halves + on_link(between_, bytes, machines, place);
}

}  // namespace ridgeline::predict
