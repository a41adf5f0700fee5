#include "predict/efficiency.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace ridgeline::predict {
namespace {

// How firmly a slowdown stays near the prior: as if this many iterations had shown it.
constexpr double kPriorWeight = 0.1;
// What a step costs beside its work, before anything is known: a node of a recorded graph and the
// ramp of a kernel, or waking some threads.
constexpr double kFirstStepSeconds = 3e-6;
// A slowdown below 1 says that a roof is no roof: caches that data sheets do not tell of. Far below
// it would be an error.
constexpr double kLeastSlowdown = 0.2;
// What all steps of one op tell beside an iteration.
constexpr double kPartWeight = 0.3;
constexpr int kMostRounds = 2000;
constexpr double kSettled = 1e-10;

// Minimises sum_k weight_k (x_k c - 1)^2 + sum_j kPriorWeight ((c_j - prior_j) / prior_j)^2 over
// c >= least, one coefficient after the other.
class LeastSquares {
 public:
  LeastSquares(std::vector<double> prior, std::vector<double> least)
      : prior_(std::move(prior)),
        least_(std::move(least)),
        squares_(prior_.size(), std::vector<double>(prior_.size())),
        sides_(prior_.size()) {}

  void add(const std::vector<std::pair<std::size_t, double>>& row, double weight) {
    for (const auto& [i, a] : row) {
      sides_[i] += weight * a;
      for (const auto& [j, b] : row) squares_[i][j] += weight * a * b;
    }
  }

  [[nodiscard]] std::vector<double> solve() const {
    std::vector<double> found = prior_;
    for (int round = 0; round < kMostRounds; ++round) {
      double change = 0.0;
      for (std::size_t i = 0; i < found.size(); ++i) {
        const double firm = kPriorWeight / (prior_[i] * prior_[i]);
        double side = sides_[i] + firm * prior_[i];
        for (std::size_t j = 0; j < found.size(); ++j) {
          if (j != i) side -= squares_[i][j] * found[j];
        }
        const double value = std::max(least_[i], side / (squares_[i][i] + firm));
        change = std::max(change, std::abs(value - found[i]) / prior_[i]);
        found[i] = value;
      }
      if (change < kSettled) break;
    }
    return found;
  }

 private:
  std::vector<double> prior_, least_;
  std::vector<std::vector<double>> squares_;
  std::vector<double> sides_;
};

double least_of(const Demand& demand) {
  double sum = 0.0;
  for (const auto& [kind, part] : demand) sum += part.least_seconds;
  return sum;
}

double usual_slowdown(std::span<const Observation* const> seen) {
  std::vector<double> ratios;
  for (const Observation* one : seen) {
    const double least = least_of(one->demand);
    if (!one->part && least > 0.0) ratios.push_back(one->seconds / least);
  }
  ensure(!ratios.empty(), "no observation demands anything");
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

}  // namespace

double Efficiencies::of(const Kind& kind) const {
  const auto found = slowdown.find(kind);
  return found == slowdown.end() ? usual : found->second;
}

double Efficiencies::seconds(const Kind& kind, const Part& part) const {
  return of(kind) * part.least_seconds + step_seconds * part.steps;
}

double Efficiencies::seconds(const Demand& demand) const {
  double sum = 0.0;
  for (const auto& [kind, part] : demand) sum += seconds(kind, part);
  return sum;
}

Efficiencies learn(std::span<const Observation* const> seen, const Efficiencies* prior) {
  Efficiencies found;
  if (prior != nullptr) found = *prior;
  if (prior == nullptr) found.usual = usual_slowdown(seen);
  if (found.step_seconds <= 0.0) found.step_seconds = kFirstStepSeconds;

  // The last coefficient is the constant of a step.
  std::map<Kind, std::size_t> places;
  std::vector<double> before, least;
  for (const Observation* one : seen) {
    for (const auto& [kind, part] : one->demand) {
      if (!places.emplace(kind, places.size()).second) continue;
      before.push_back(found.of(kind));
      least.push_back(kLeastSlowdown);
    }
  }
  const std::size_t constant = places.size();
  before.push_back(found.step_seconds);
  least.push_back(0.0);

  LeastSquares system(before, least);
  for (const Observation* one : seen) {
    std::vector<std::pair<std::size_t, double>> whole;
    double steps = 0.0;
    for (const auto& [kind, part] : one->demand) {
      whole.emplace_back(places[kind], part.least_seconds / one->seconds);
      steps += part.steps;
      const auto timed = one->kind_seconds.find(kind);
      if (timed == one->kind_seconds.end() || timed->second <= 0.0) continue;
      // A kind counts as far as it matters.
      system.add({{places[kind], part.least_seconds / timed->second},
                  {constant, part.steps / timed->second}},
                 timed->second / one->seconds);
    }
    whole.emplace_back(constant, steps / one->seconds);
    system.add(whole, one->part ? kPartWeight : 1.0);
  }
  const std::vector<double> solved = system.solve();
  for (const auto& [kind, place] : places) found.slowdown[kind] = solved[place];
  found.step_seconds = solved[constant];
  return found;
}

}  // namespace ridgeline::predict
