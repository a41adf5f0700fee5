#include "audit/facts.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "inspect/complexity.h"
#include "train/step_runner.h"

namespace ridgeline::audit {
namespace {

// Letters and digits in lower case.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) result += static_cast<char>(std::tolower(byte));
  }
  return result;
}

constexpr std::array kDatasets = std::to_array<DatasetFacts>({
    {"tinyimagenet", 64, 200, 100'000, 10'000},
    {"imagenette", 0, 10, 9'469, 3'925},
    {"imagenet", 224, 1000, 1'281'167, 50'000},
    {"fashionmnist", 28, 10, 60'000, 10'000},
    {"mnist", 28, 10, 60'000, 10'000},
    {"digitrecognizer", 28, 10, 42'000, 28'000},
    {"cifar100", 32, 100, 50'000, 10'000},
    {"cifar10", 32, 10, 50'000, 10'000},
    {"catsvsdogs", 0, 2, 0, 0},
    {"catsanddogs", 0, 2, 0, 0},
});

StepSpec step_of(const NetworkQuery& query, std::int64_t batch) {
  StepSpec spec;
  spec.model = default_config(zoo_name(query.model));
  if (query.image) spec.model.height = spec.model.width = *query.image;
  if (query.classes) spec.model.classes = *query.classes;
  spec.batch = batch;
  return spec;
}

std::string key_of(const NetworkQuery& query, std::int64_t batch) {
  return fmt::format("{} {} {} {}", plain(query.model), query.image.value_or(0),
                     query.classes.value_or(0), batch);
}

double parameters_with(StepSpec spec, std::int64_t classes) {
  spec.model.classes = classes;
  return static_cast<double>(count_parameters(evaluation_graph(spec).parameters));
}

NetworkFacts facts_of(const StepSpec& spec, const Plan& plan) {
  const StepWork work = work_of(plan);
  const Cost forward = work.forward();
  NetworkFacts facts;
  facts.name = spec.model.name;
  facts.image = spec.model.height;
  facts.classes = spec.model.classes;
  facts.parameters = parameters_with(spec, spec.model.classes);
  facts.least_parameters = parameters_with(spec, 2);
  facts.most_parameters = parameters_with(spec, 1000);
  facts.forward_macs = static_cast<double>(forward.macs);
  facts.forward_flops = static_cast<double>(forward.flops);
  // The optimizer's work does not grow with the batch; an image alone would bear all of it.
  facts.training_macs = static_cast<double>(work.total.macs);
  facts.training_flops = static_cast<double>(work.total.flops - work.of(Phase::optimizer).flops);
  return facts;
}

HardwareFacts facts_of(const KnownGpu& gpu) {
  return {.name = gpu.name,
          .flops = gpu.flops,
          .bytes_per_second = gpu.memory_bytes_per_second,
          .memory_bytes = gpu.memory_bytes};
}

double fp32_of(const KnownGpu& gpu) {
  const auto found = gpu.flops.find("fp32");
  return found == gpu.flops.end() ? 0.0 : found->second;
}

// The fastest of the devices that a name may mean, to avoid false accusations.
HardwareFacts best_of(const std::vector<const KnownGpu*>& kinds, const std::string& written) {
  HardwareFacts best = facts_of(*kinds.front());
  for (const KnownGpu* kind : kinds) {
    for (const auto& [precision, rate] : kind->flops) {
      best.flops[precision] = std::max(best.flops[precision], rate);
    }
    const auto more = [](std::optional<double>& most, const std::optional<double>& other) {
      if (other && (!most || *other > *most)) most = other;
    };
    more(best.bytes_per_second, kind->memory_bytes_per_second);
    more(best.memory_bytes, kind->memory_bytes);
  }
  if (kinds.size() > 1) {
    best.name = fmt::format("{} (the fastest of {} kinds)", written, kinds.size());
  }
  return best;
}

}  // namespace

std::string zoo_name(std::string_view written) {
  const std::string wanted = plain(written);
  if (wanted.empty()) return {};
  std::string best;
  for (const ModelInfo& model : all_models()) {
    const std::string name = plain(model.name);
    if (name == wanted) return std::string(model.name);
    // "torchvision resnet18 (pretrained)" names one; the longest name counts.
    if (name.size() >= 6 && wanted.starts_with(name) && name.size() > plain(best).size() &&
        (wanted.size() == name.size() ||
         std::isdigit(static_cast<unsigned char>(wanted[name.size()])) == 0)) {
      best = model.name;
    }
  }
  if (best.empty() && (wanted == "squeezenet" || wanted == "squeezenet11")) return "squeezenet1_1";
  return best;
}

const DatasetFacts* find_dataset(std::string_view written) {
  const std::string wanted = plain(written);
  if (wanted.empty()) return nullptr;
  for (const DatasetFacts& dataset : kDatasets) {
    if (wanted.starts_with(dataset.name)) return &dataset;
  }
  return nullptr;
}

std::optional<double> HardwareFacts::roof(const std::string& precision) const {
  const std::string wanted = plain(precision);
  const auto rate = [&](const char* unit) {
    const auto found = flops.find(unit);
    return found == flops.end() ? 0.0 : found->second;
  };
  double roof = 0.0;
  if (wanted.empty() || wanted.find("32") != std::string::npos || wanted == "single") {
    roof = std::max(rate("fp32"), rate("tf32"));
  } else if (wanted.find("64") != std::string::npos || wanted == "double") {
    roof = rate("fp64");
  } else {
    roof = fastest();
  }
  return roof > 0.0 ? std::optional(roof) : std::nullopt;
}

double HardwareFacts::fastest() const {
  double best = 0.0;
  for (const auto& [precision, rate] : flops) best = std::max(best, rate);
  return best;
}

Facts::Facts() : known_(known_hardware()), cpu_(make_cpu_device()) {
  const KnownGpu* slowest = nullptr;
  for (const KnownGpu& gpu : known_.gpus) {
    if (!gpu.integrated && fp32_of(gpu) > 0.0 &&
        (slowest == nullptr || fp32_of(gpu) < fp32_of(*slowest))) {
      slowest = &gpu;
    }
  }
  ensure(slowest != nullptr, "the table of hardware has no GPU");
  slowest_ = facts_of(*slowest);
}

const NetworkFacts* Facts::network(const NetworkQuery& query) {
  auto [found, fresh] = networks_.try_emplace(key_of(query, 1));
  if (fresh && !zoo_name(query.model).empty()) {
    try {
      const StepSpec spec = step_of(query, 1);
      found->second = facts_of(spec, dry_plan(spec, PlanRequest{}, *cpu_));
    } catch (const Error&) {
      // Such images are too small for the network: nothing can be said of it.
    }
  }
  return found->second ? &*found->second : nullptr;
}

std::optional<double> Facts::intensity(const NetworkQuery& query, std::int64_t batch) {
  auto [found, fresh] = intensities_.try_emplace(key_of(query, batch));
  if (fresh && network(query) != nullptr) {
    found->second = training_intensity(work_of(
        dry_plan(step_of(query, std::clamp<std::int64_t>(batch, 1, 512)), PlanRequest{}, *cpu_)));
  }
  return found->second;
}

const HardwareFacts* Facts::hardware(const std::string& written) {
  if (const auto found = measured_.find(plain(written)); found != measured_.end()) {
    return &found->second;
  }
  auto [found, fresh] = hardware_.try_emplace(written);
  if (fresh) {
    const std::vector<const KnownGpu*> kinds = gpus_named(known_, written);
    if (!kinds.empty()) found->second = best_of(kinds, written);
  }
  return found->second ? &*found->second : nullptr;
}

void Facts::add_measured(const std::vector<std::string>& names, const HardwareFacts& facts) {
  for (const std::string& name : names) {
    if (!plain(name).empty()) measured_[plain(name)] = facts;
  }
}

std::vector<std::string> Facts::hardware_names() const {
  std::vector<std::string> names;
  for (const KnownGpu& gpu : known_.gpus) names.push_back(gpu.name);
  return names;
}

}  // namespace ridgeline::audit
