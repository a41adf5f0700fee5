#include "backends/cudnn/plan_choice.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>

#include "backends/cudnn/measure.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "plan/choice_cache.h"

namespace ridgeline::cudnn {
namespace {

constexpr std::size_t kMostEngines = 10, kMostAlgorithms = 6;
// Engines that are compiled when they are built take up to a second each: not all are tried then.
// The libraries propose what they think the fastest first.
constexpr double kMostSeconds = 0.6;
// A choice within this share of the fastest may be taken for its smaller workspace.
constexpr double kNearly = 0.02;
// Those within this share are measured once more: clocks may have risen since the first turn.
constexpr double kClose = 0.10;

// Engines for f32 without TF32 bring images into an order of their own first, in their workspace:
// where memory is plenty, that is better than the few that do without.
std::size_t most_workspace() {
  constexpr std::size_t kAlways = std::size_t{256} << 20, kShare = 64;
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  return std::max(kAlways, total / kShare);
}

// A product with what is known of it.
struct Entry {
  std::vector<Candidate> candidates;
  std::vector<std::optional<std::shared_ptr<const Executable>>> built;
  std::size_t workspace_limit = 0;
  std::optional<Choice> choice, unmeasured;

  // Null when the library refuses, or wants too large a workspace.
  const std::shared_ptr<const Executable>& build(std::size_t index) {
    auto& made = built[index];
    if (!made) {
      made = candidates[index].build();
      if (*made != nullptr && (*made)->workspace_bytes > workspace_limit) made->reset();
    }
    return *made;
  }
};

std::vector<Candidate> candidates_of(const Product& product) {
  std::vector<Candidate> all = matmul_candidates(product, kMostAlgorithms);
  for (Candidate& engine : engine_candidates(product, kMostEngines)) {
    all.push_back(std::move(engine));
  }
  return all;
}

// Executables belong to a device, even where two are of the same kind.
Entry& entry_of(const Product& product) {
  static std::map<std::pair<int, std::string>, Entry> known;
  int device = 0;
  check(cudaGetDevice(&device), "asking for the device");
  const auto [found, is_new] = known.try_emplace({device, product.text()});
  Entry& entry = found->second;
  if (is_new) {
    entry.candidates = candidates_of(product);
    entry.built.resize(entry.candidates.size());
    entry.workspace_limit = most_workspace();
  }
  return entry;
}

std::filesystem::path cache_file() {
  std::filesystem::path file = default_choice_cache();
  if (!file.empty()) file.replace_filename("cudnn_plans.json");
  return file;
}

std::string cache_key(const Product& product) {
  return fmt::format("{} | {} | {}", product.text(), device_name(), library_version());
}

// What an earlier process chose, if it is still on offer.
std::optional<Choice> recalled(Entry& entry, const Product& product) {
  const std::vector<std::string> stored = load_choice(cache_file(), cache_key(product));
  if (stored.size() != 2) return std::nullopt;
  const std::optional<double> seconds = number_in<double>(stored[1]);
  for (std::size_t i = 0; seconds && i < entry.candidates.size(); ++i) {
    if (entry.candidates[i].name != stored[0]) continue;
    if (const auto& executable = entry.build(i)) return Choice{executable, *seconds};
  }
  return std::nullopt;
}

Choice first_buildable(Entry& entry) {
  for (std::size_t i = 0; i < entry.candidates.size(); ++i) {
    if (const auto& executable = entry.build(i)) return {executable, 0.0};
  }
  return {};
}

Choice fastest_of(const std::vector<Choice>& measured) {
  Choice best;
  double least = std::numeric_limits<double>::infinity();
  for (const Choice& choice : measured) least = std::min(least, choice.seconds);
  if (std::isinf(least)) return best;
  for (const Choice& choice : measured) {
    if (choice.seconds > least * (1.0 + kNearly)) continue;
    if (best.executable == nullptr ||
        choice.executable->workspace_bytes < best.executable->workspace_bytes) {
      best = choice;
    }
  }
  return best;
}

// Empty where nothing could be measured.
Choice measured_choice(Entry& entry, const Product& product) {
  Bench bench(product);
  if (!bench.ready()) return {};
  const Clock::time_point begin = Clock::now();
  std::vector<Choice> measured;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < entry.candidates.size(); ++i) {
    const std::chrono::duration<double> passed = Clock::now() - begin;
    if (passed.count() > kMostSeconds && !std::isinf(best)) break;
    const auto& executable = entry.build(i);
    if (executable == nullptr) continue;
    measured.push_back({executable, bench.seconds(*executable, best)});
    best = std::min(best, measured.back().seconds);
  }
  for (Choice& choice : measured) {
    if (std::isinf(choice.seconds) || choice.seconds > best * (1.0 + kClose)) continue;
    choice.seconds = std::min(choice.seconds, bench.seconds(*choice.executable, best));
  }
  return fastest_of(measured);
}

Choice make_choice(Entry& entry, const Product& product) {
  if (std::optional<Choice> known = recalled(entry, product)) return *known;
  Choice choice = measured_choice(entry, product);
  if (choice.executable == nullptr) return first_buildable(entry);
  store_choice(cache_file(), cache_key(product),
               {choice.executable->name, fmt::format("{:.4g}", choice.seconds)});
  return choice;
}

}  // namespace

bool can_compute(const Product& product) {
  Entry& entry = entry_of(product);
  if (entry.choice) return entry.choice->executable != nullptr;
  return first_buildable(entry).executable != nullptr;
}

const Choice& choice_for(const Product& product, bool measure) {
  Entry& entry = entry_of(product);
  if (!measure) {
    // Whatever was measured before, here or elsewhere: the same plan every time.
    if (!entry.unmeasured) entry.unmeasured = first_buildable(entry);
    return *entry.unmeasured;
  }
  if (!entry.choice) {
    entry.choice = make_choice(entry, product);
    // Plans that were not chosen hold memory, some of it on the device.
    entry.built.assign(entry.candidates.size(), std::nullopt);
  }
  return *entry.choice;
}

std::shared_ptr<const Executable> executable_named(const Product& product,
                                                   const std::string& name) {
  Entry& entry = entry_of(product);
  for (std::size_t i = 0; i < entry.candidates.size(); ++i) {
    if (entry.candidates[i].name == name) return entry.build(i);
  }
  return nullptr;
}

std::shared_ptr<const Executable> executable_within(const Product& product,
                                                    std::size_t workspace_bytes) {
  Entry& entry = entry_of(product);
  for (std::size_t i = 0; i < entry.candidates.size(); ++i) {
    const auto& executable = entry.build(i);
    if (executable != nullptr && executable->workspace_bytes <= workspace_bytes) return executable;
  }
  return nullptr;
}

}  // namespace ridgeline::cudnn
