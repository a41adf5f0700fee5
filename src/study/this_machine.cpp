#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "backends/registry.h"
#include "base/error.h"
#include "data/catalog.h"
#include "devices/device.h"
#include "devices/opencl.h"
#include "measure/machine/environment.h"
#include "peers/peer.h"
#include "ranks/launch.h"
#include "study/capabilities.h"
#include "study/datasets.h"

namespace ridgeline::study {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEndings[] = {".safetensors", ".pth", ".pt"};

class ThisMachine final : public Capabilities {
 public:
  explicit ThisMachine(MachineOptions options) : options_(std::move(options)) {}

  std::string refuse(const ExecutorName& executor) override {
    const auto [known, fresh] = refusals_.emplace(executor.backend + "@" + executor.device, "");
    if (fresh) known->second = why_not(executor);
    return known->second;
  }

  std::string refuse_precision(const ExecutorName& executor, Precision precision) override {
    if (is_peer(executor.backend)) return parse_peer(executor.backend).info->refuse(precision);
    return device(executor.device).refuse(precision);
  }

  std::string refuse_ranks() override {
    try {
      (void)rank_launcher(2);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }
  int processors() override { return environment().usable_processors; }

  std::vector<std::string> devices() override {
    std::vector<std::string> names = {"cpu"};
    for (std::size_t i = 0; i < gpus(); ++i) names.push_back(fmt::format("cuda:{}", i));
    for (std::size_t i = 0; i < opencl().size(); ++i) names.push_back(fmt::format("opencl:{}", i));
    return names;
  }

  std::optional<std::string> find_data(const std::string& name) override {
    if (is_synthetic(name)) return name;
    if (const auto given = options_.data.find(name); given != options_.data.end()) {
      return given->second;
    }
    const StudyDataset* dataset = find_study_dataset(name);
    if (dataset == nullptr) return exists(name) ? std::optional(name) : std::nullopt;
    // By name where the commands find it by themselves: then all machines call it the same.
    const auto published = known_datasets();
    if (std::any_of(published.begin(), published.end(),
                    [&](const KnownDataset& known) { return known.name == name; })) {
      for (const fs::path& folder : dataset_folders(name)) {
        if (exists(folder)) return name;
      }
    }
    for (const fs::path& folder : folders()) {
      for (const std::string_view place : dataset->places) {
        if (exists(folder / place)) return (folder / place).string();
        // The folder itself.
        if (!folder.empty() && folder.filename() == fs::path(place)) return folder.string();
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> find_weights(const std::string& name) override {
    if (const auto given = options_.data.find(name); given != options_.data.end()) {
      return given->second;
    }
    if (exists(name)) return name;
    for (const fs::path& folder : folders()) {
      for (const char* ending : kEndings) {
        if (exists(folder / (name + ending))) return (folder / (name + ending)).string();
      }
    }
    return std::nullopt;
  }

  std::optional<std::int64_t> memory_bytes(const std::string& name) override {
    if (name == "cpu") {
      const Environment& env = environment();
      std::int64_t bytes = env.memory_bytes;
      if (env.hosting.memory_limit_bytes) {
        bytes = bytes > 0 ? std::min(bytes, *env.hosting.memory_limit_bytes)
                          : *env.hosting.memory_limit_bytes;
      }
      return bytes > 0 ? std::optional(bytes) : std::nullopt;
    }
    const std::size_t number = number_of(name);
    if (name.starts_with("opencl")) {
      if (number >= opencl().size()) return std::nullopt;
      return opencl()[number].memory_bytes;
    }
    const std::vector<GpuInfo>& all = environment().gpus;
    if (number >= all.size() || all[number].memory_bytes <= 0) return std::nullopt;
    return all[number].memory_bytes;
  }

  DeviceSpeed speed(const std::string& name) override {
    DeviceSpeed speed;
    for (const Ceiling& ceiling : options_.ceilings) {
      if (ceiling.device != name || ceiling.scope == "one core") continue;
      if (ceiling.kind == "compute" && ceiling.subject == "fp32") {
        speed.flops = std::max(speed.flops, ceiling.high);
      }
      if (ceiling.kind == "bandwidth" && ceiling.subject == "memory") {
        speed.bytes = std::max(speed.bytes, ceiling.high);
      }
    }
    const DeviceSpeed guess = guessed_speed(name);
    return {speed.flops > 0.0 ? speed.flops : guess.flops,
            speed.bytes > 0.0 ? speed.bytes : guess.bytes};
  }

  bool ceilings_known(const std::string& name) override {
    return std::any_of(options_.ceilings.begin(), options_.ceilings.end(),
                       [&](const Ceiling& ceiling) { return ceiling.device == name; });
  }

 private:
  static bool exists(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
  }
  static std::size_t number_of(const std::string& device) {
    const std::size_t colon = device.find(':');
    return colon == std::string::npos ? 0 : std::stoul(device.substr(colon + 1));
  }
  static std::size_t gpus() {
    static const std::size_t count = cuda_unavailable().empty() ? cuda_devices().size() : 0;
    return count;
  }
  static const std::vector<OpenClInfo>& opencl() {
    static const std::vector<OpenClInfo> devices = opencl_devices();
    return devices;
  }

  const Environment& environment() {
    if (!environment_) environment_ = read_environment();
    return *environment_;
  }
  Device& device(const std::string& name) {
    std::unique_ptr<Device>& made = devices_[name];
    if (made == nullptr) made = make_device(name);
    return *made;
  }

  std::string why_not(const ExecutorName& executor) {
    if (executor.device.starts_with("cuda")) {
      const std::string reason = cuda_unavailable();
      if (!reason.empty()) return "no GPU: " + reason;
      if (number_of(executor.device) >= gpus()) {
        return fmt::format("no {}: this machine has {} of them", executor.device, gpus());
      }
    }
    if (executor.device.starts_with("opencl")) {
      const std::string reason = opencl_unavailable();
      if (!reason.empty()) return reason;
      if (number_of(executor.device) >= opencl().size()) {
        return fmt::format("no {}: this machine has {} of them", executor.device, opencl().size());
      }
    }
    if (is_peer(executor.backend)) {
#ifndef __APPLE__
      if (executor.device == "mps") return "no MPS device: that is a Mac's GPU";
#endif
      return peer_availability(parse_peer(executor.backend)).reason;
    }
    for (const Backend* backend : all_backends()) {
      if (backend->name == executor.backend) return backend->unavailable();
    }
    return {};
  }

  // Where nothing was measured: what usual hardware has.
  DeviceSpeed guessed_speed(const std::string& name) {
    const std::size_t number = number_of(name);
    const bool on_host =
        name.starts_with("opencl") && number < opencl().size() && opencl()[number].cpu;
    if (name != "cpu" && !on_host) return {20e12, 500e9};
    const auto& extensions = environment().vector_extensions;
    const auto has = [&](const char* word) {
      return std::find(extensions.begin(), extensions.end(), word) != extensions.end();
    };
    const double a_cycle = has("avx512f") ? 32.0 : has("avx2") || has("asimd") ? 16.0 : 8.0;
    const double cores = std::max(1U, std::thread::hardware_concurrency());
    return {a_cycle * 2.5e9 * cores, 10e9};
  }

  std::vector<fs::path> folders() const {
    std::vector<fs::path> all;
    if (!options_.data_folder.empty()) {
      fs::path folder = options_.data_folder;
      // "photos/" and "photos" are the same.
      all.push_back(folder.has_filename() ? folder : folder.parent_path());
    }
    if (const char* data = std::getenv("RIDGELINE_DATA"); data != nullptr && *data != '\0') {
      all.emplace_back(data);
    }
    all.emplace_back("data");
    return all;
  }

  MachineOptions options_;
  std::optional<Environment> environment_;
  std::map<std::string, std::unique_ptr<Device>> devices_;
  std::map<std::string, std::string> refusals_;
};

}  // namespace

std::unique_ptr<Capabilities> this_machine(MachineOptions options) {
  return std::make_unique<ThisMachine>(std::move(options));
}

}  // namespace ridgeline::study
