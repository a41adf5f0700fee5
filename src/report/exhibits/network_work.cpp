#include "report/exhibits/network_work.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "lab/complexity.h"

namespace ridgeline::report {
namespace {

// Stores come from anywhere: no plan is made for what no machine could hold.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 36;

std::int64_t number_at(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 1 || number > (1 << 20)) bad_input("no number");
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with('x')) text.remove_prefix(1);
  return number;
}

ModelConfig config_of(const Work& work, std::int64_t batch) {
  ModelConfig config = default_config(work.model);
  std::string_view image = work.image;
  if (!image.empty()) {
    config.channels = number_at(image);
    config.height = number_at(image);
    config.width = number_at(image);
  }
  if (config.channels * config.height > kMostPixels / config.width / batch) bad_input("too large");
  if (work.classes > 0) config.classes = std::min<std::int64_t>(work.classes, 1 << 20);
  // "depth=3,hidden=64,32": a part without a name belongs to the one before it.
  std::string_view rest = work.settings;
  std::string* value = nullptr;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals != std::string_view::npos) {
      value = &config.options[std::string(part.substr(0, equals))];
      *value = part.substr(equals + 1);
    } else if (value != nullptr) {
      *value += ",";
      *value += part;
    }
  }
  check_config(config);
  return config;
}

OptimizerAttributes optimizer_of(const Work& work) {
  if (work.optimizer.starts_with("adam")) return AdamAttributes{};
  const bool momentum = work.optimizer.find("momentum") != std::string::npos;
  return SgdAttributes{.momentum = momentum ? 0.9 : 0.0};
}

NetworkWork planned(const Work& work, std::int64_t batch) {
  NetworkWork made;
  made.batch = batch;
  try {
    if (batch < 1) bad_input("no batch");
    StepSpec spec;
    spec.model = config_of(work, batch);
    spec.batch = batch;
    spec.optimizer = optimizer_of(work);
    const std::unique_ptr<Device> device = make_device("cpu");
    const Plan plan = dry_plan(spec, PlanRequest{}, *device);
    const StepWork step = work_of(plan);
    for (const LayerComplexity& layer : layers_of(plan)) {
      made.parameters += static_cast<double>(layer.parameters);
    }
    const double samples = static_cast<double>(batch);
    made.forward_macs = static_cast<double>(step.forward().macs) / samples;
    made.forward_flops = static_cast<double>(step.forward().flops) / samples;
    made.training_flops = static_cast<double>(step.total.flops) / samples;
    made.bytes = static_cast<double>(step.moved_bytes) / samples;
    made.intensity = training_intensity(step);
  } catch (const Error&) {
    made.error = fmt::format("'{}' with inputs of {} is no network of this program", work.model,
                             work.image.empty() ? "unknown size" : work.image);
  }
  return made;
}

}  // namespace

const NetworkWork& network_work(const Work& work, std::int64_t batch) {
  static std::mutex mutex;
  static std::map<std::string, NetworkWork> known;
  const std::string key = fmt::format("{}|{}|{}|{}|{}|{}", work.model, work.settings, work.image,
                                      work.classes, work.optimizer, batch);
  const std::lock_guard lock(mutex);
  const auto found = known.find(key);
  return found != known.end() ? found->second : known[key] = planned(work, batch);
}

}  // namespace ridgeline::report
