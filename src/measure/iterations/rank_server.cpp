// The ranks' side of rank_step.h.

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/stats/summary.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "measure/iterations/details_json.h"
#include "measure/iterations/rank_step.h"
#include "ranks/agree.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

// Rank 0 may be told to wait for hours; a rank that does not answer within a step is missing.
constexpr double kIdlePatience = 1e9, kStepPatience = 300.0;

// Of an iteration on one rank, as ranks tell each other.
struct Times {
  double wall = 0.0, exchange = 0.0, exposed = 0.0;
};

std::string machine_name() {
  char name[256] = "";
  (void)gethostname(name, sizeof(name) - 1);
  return name;
}

class Server {
 public:
  Server(bool connected, Ranks& ranks)
      : connected_(connected),
        ranks_(ranks),
        machines_(ranks.gather(machine_name())),
        busy_(static_cast<std::size_t>(ranks.size())) {}

  // What hindered a rank, as an answer; null: nothing did.
  Json make(const std::function<std::unique_ptr<MeasuredStep>()>& make) {
    return together([&] { step_ = make(); });
  }

  Json answer(const Json& asked) {
    const auto what = asked.at("do").get<std::string>();
    if (what == "about") return about();
    if (what == "prepare") return prepare();
    if (what == "run") return run(asked.at("count").get<std::int64_t>());
    if (what == "split") return split();
    if (what == "details") return details(asked.at("timed").get<bool>());
    fail("there is no '{}'", what);
  }
  void close() {
    if (step_) step_->close();
  }

 private:
  // Work without exchanges, which may fail on one rank alone.
  template <typename Body>
  Json together(Body body) {
    std::optional<Error> trouble;
    try {
      body();
      trouble = trouble_of_any(ranks_, nullptr);
    } catch (const std::exception& error) {
      trouble = trouble_of_any(ranks_, &error);
    }
    if (!trouble) return {};
    return {{"error", trouble->what()}, {"kind", static_cast<int>(trouble->kind())}};
  }

  Json about() {
    auto bytes = step_->subject().needed_bytes.value_or(0);
    ranks_.all_reduce({&bytes, 1});
    return {{"transport", ranks_.transport()}, {"nodes", ranks_.nodes()}, {"needed_bytes", bytes}};
  }

  Json prepare() {
    Preparation preparation;
    Json error = together([&] { preparation = step_->prepare(); });
    if (!error.is_null()) return error;
    return {{"setup_seconds", preparation.setup_seconds}};
  }

  Json run(std::int64_t count) {
    std::vector<Times> own;
    ranks_.barrier();
    step_->run(count, [&](const Iteration& iteration) {
      exchanges_seen_ = iteration.exchange_seconds.has_value();
      own.push_back({iteration.wall_seconds, iteration.exchange_seconds.value_or(0.0),
                     iteration.exposed_seconds.value_or(0.0)});
      return true;
    });
    const std::size_t iterations = own.size(), all_ranks = busy_.size();
    std::vector<Times> all(iterations * all_ranks);
    ranks_.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < iterations; ++i) {
      Times mean;
      for (std::size_t rank = 0; rank < all_ranks; ++rank) {
        const Times& times = all[rank * iterations + i];
        busy_[rank].push_back(times.wall - times.exposed);
        mean.wall += times.wall / static_cast<double>(all_ranks);
        mean.exchange += times.exchange / static_cast<double>(all_ranks);
        mean.exposed += times.exposed / static_cast<double>(all_ranks);
      }
      Sample& sample = samples.emplace_back();
      sample.wall_seconds = mean.wall;
      if (!connected_ || !exchanges_seen_) continue;
      sample.exchange_seconds = mean.exchange;
      sample.exposed_seconds = mean.exposed;
    }
    return {{"samples", list_json(samples)}};
  }

  Json split() {
    std::vector<Sample> samples;
    ranks_.barrier();
    if (const auto phases = step_->run_split()) {
      Sample& sample = samples.emplace_back();
      sample.wall_seconds = phases->wall_seconds;
      sample.forward_seconds = phases->forward_seconds;
      sample.backward_seconds = phases->backward_seconds;
      sample.optimizer_seconds = phases->optimizer_seconds;
    }
    return {{"samples", list_json(samples)}};
  }

  Json details(bool timed) {
    ranks_.barrier();
    StepDetails details = step_->details(timed);
    // Numbers of a whole step are those of all ranks.
    for (const char* name : {"forward_macs", "forward_flops", "training_flops", "executed_flops",
                             "plan_bytes_read", "plan_bytes_written"}) {
      const auto found = details.numbers.find(name);
      if (found != details.numbers.end()) found->second *= ranks_.size();
    }
    if (exchanges_seen_) {
      const SlowRank slow = slow_rank(busy_, machines_);
      details.numbers["slow_rank_share"] = slow.share;
      if (slow.finding && connected_) details.findings.push_back(*slow.finding);
    }
    return {{"details", details_json(details)}};
  }

  std::unique_ptr<MeasuredStep> step_;
  bool connected_;
  bool exchanges_seen_ = false;  // it is known how long they take
  Ranks& ranks_;
  std::vector<std::string> machines_;      // of each rank
  std::vector<std::vector<double>> busy_;  // of each rank, of each iteration
};

}  // namespace

void serve_rank_step(const std::function<std::unique_ptr<MeasuredStep>()>& make, bool connected,
                     Ranks& ranks, const std::function<std::optional<std::string>()>& read,
                     const std::function<void(const std::string& line)>& write) {
  Server server(connected, ranks);
  const Json hindered = server.make(make);
  for (;;) {
    ranks.set_patience(kIdlePatience);
    // Rank 0 waits for its line alone; an empty one is the end.
    const std::string line = ranks.gather(ranks.first() ? read().value_or("") : "").front();
    if (line.empty()) break;
    ranks.set_patience(kStepPatience);
    const Json answer = hindered.is_null() ? server.answer(Json::parse(line)) : hindered;
    if (ranks.first()) write(json_text(answer));
  }
  server.close();
}

SlowRank slow_rank(std::span<const std::vector<double>> busy,
                   std::span<const std::string> machines) {
  constexpr double kMatters = 0.1, kOften = 0.75;
  constexpr std::size_t kFewest = 8;
  SlowRank slow;
  if (busy.empty() || busy[0].size() < kFewest) return slow;
  std::vector<double> medians;
  for (const std::vector<double>& seconds : busy) medians.push_back(median_of(seconds));
  const auto slowest = std::max_element(medians.begin(), medians.end());
  std::vector<double> others(medians.begin(), slowest);
  others.insert(others.end(), slowest + 1, medians.end());
  if (others.empty()) return slow;
  const auto rank = static_cast<std::size_t>(slowest - medians.begin());
  const double usual = median_of(others);
  slow.rank = static_cast<int>(rank);
  slow.share = *slowest / usual - 1.0;
  std::size_t times = 0;
  for (std::size_t i = 0; i < busy[rank].size(); ++i) {
    times += std::all_of(busy.begin(), busy.end(),
                         [&](const auto& other) { return other[i] <= busy[rank][i]; });
  }
  const double often = static_cast<double>(times) / static_cast<double>(busy[rank].size());
  if (slow.share < kMatters || often < kOften) return slow;
  slow.finding = Finding{
      "slow rank", "warning",
      fmt::format("rank {} ({}) computes {:.0f}% longer than the others do in the median ({} "
                  "against {}), in {:.0f}% of the iterations: they wait for it",
                  rank, machines[rank], 100.0 * slow.share, duration_text(*slowest),
                  duration_text(usual), 100.0 * often)};
  return slow;
}

}  // namespace ridgeline
