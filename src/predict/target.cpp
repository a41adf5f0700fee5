#include "predict/target.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/text_file.h"

namespace ridgeline::predict {
namespace {

constexpr const char* kSheet = "data sheet";

Roofs roofs_of_sheet(const std::map<std::string, double>& flops, std::optional<double> bandwidth) {
  Roofs roofs;
  for (const auto& [precision, rate] : flops) {
    const bool plain = precision == "fp32" || precision == "fp64";
    roofs.compute.push_back({plain ? precision : "tensor " + precision, kSheet, rate});
  }
  if (bandwidth) roofs.memory.push_back({"memory", kSheet, *bandwidth, 0});
  return roofs;
}

// Of measured roofs, main memory alone; gives the bytes of the L2 caches. A virtual machine's L3
// serves its neighbours too.
double keep_memory_alone(Roofs& roofs) {
  double cache = 0.0;
  for (const MemoryRoof& roof : roofs.memory) {
    if (roof.level == "L2") cache = static_cast<double>(roof.capacity_bytes);
  }
  if (!roofs.memory.empty()) roofs.memory = {roofs.memory.back()};
  return cache;
}

std::string name_of_machine(const EnvironmentRecord& environment) {
  if (!environment.label.empty()) return environment.label;
  return environment.host.empty() ? environment.cpu : environment.host;
}

// Every CPU device of the store's machines, as many threads as it has.
std::vector<Target> machines_of(const Store& store, const KnownHardware& known) {
  std::vector<Target> machines;
  for (const EnvironmentRecord& environment : store.environments()) {
    const std::vector<Ceiling> ceilings = store.ceilings(environment.key);
    std::set<std::string> devices;
    for (const Ceiling& ceiling : ceilings) devices.insert(ceiling.device);
    for (const std::string& device : devices) {
      if (auto target = stored_target(environment, ceilings, device, 0, known)) {
        machines.push_back(std::move(*target));
      }
    }
  }
  return machines;
}

}  // namespace

std::string letters_of(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) result += static_cast<char>(std::tolower(byte));
  }
  return result;
}

Target target_of(const KnownGpu& gpu) {
  Target target;
  target.name = gpu.name;
  target.family = Family::gpu;
  target.roofs = roofs_of_sheet(gpu.flops, gpu.memory_bytes_per_second);
  target.cache_bytes = gpu.cache_bytes.value_or(0.0);
  target.memory_bytes = gpu.memory_bytes;
  target.watts = gpu.watts;
  target.source = "data sheet: " + gpu.source;
  return target;
}

std::optional<Target> target_of(const KnownCpu& cpu) {
  const std::optional<double> peak = cpu.peak();
  if (!peak) return std::nullopt;
  Target target;
  target.name = cpu.name;
  target.family = Family::cpu;
  target.roofs = roofs_of_sheet({{"fp32", *peak}}, cpu.memory_bytes_per_second);
  // Whichever unit for bf16 the plan was made for: the CPU would take its own.
  for (const char* unit : {"amx bf16", "avx512 bf16"}) {
    if (cpu.bf16_flops) target.roofs.compute.push_back({unit, "measured", *cpu.bf16_flops});
  }
  target.cache_bytes = cpu.cache_bytes.value_or(0.0);
  target.memory_bytes = cpu.memory_bytes;
  target.watts = cpu.watts;
  target.source = (cpu.flops ? "measured: " : "data sheet at its base clock: ") + cpu.source;
  return target;
}

std::optional<Target> stored_target(const EnvironmentRecord& environment,
                                    const std::vector<Ceiling>& ceilings, const std::string& device,
                                    int threads, const KnownHardware& known) {
  if (device != "cpu") {
    // Several devices of one machine are usually of one kind.
    const std::string name(environment.gpus.substr(0, environment.gpus.find(';')));
    if (const std::optional<KnownGpu> gpu = known.gpu(name)) return target_of(*gpu);
  }
  Target target;
  target.family = device == "cpu" ? Family::cpu : Family::gpu;
  target.roofs = roofs_of(ceilings, device, threads);
  if (target.roofs.empty()) return std::nullopt;
  target.cache_bytes = keep_memory_alone(target.roofs);
  target.name = name_of_machine(environment);
  if (device != "cpu") target.name += " " + device;
  if (threads > 0 && device == "cpu") target.name += fmt::format(", {} threads", threads);
  target.source = "measured ceilings of " + target.name;
  return target;
}

Targets::Targets(KnownHardware known, const Store* store) : known_(std::move(known)) {
  if (store != nullptr) machines_ = machines_of(*store, known_);
}

void Targets::add_file(const std::string& path) {
  KnownHardware more;
  parse_hardware(read_text(path), path, more);
  known_.gpus.insert(known_.gpus.begin(), more.gpus.begin(), more.gpus.end());
  known_.cpus.insert(known_.cpus.begin(), more.cpus.begin(), more.cpus.end());
}

std::vector<std::string> Targets::names() const {
  std::vector<std::string> names;
  for (const KnownGpu& gpu : known_.gpus) names.push_back(gpu.name);
  for (const KnownCpu& cpu : known_.cpus) {
    if (cpu.peak()) names.push_back(cpu.name);
  }
  for (const Target& machine : machines_) names.push_back(machine.name);
  return names;
}

std::vector<Target> Targets::find(const std::string& written) {
  std::vector<Target> found;
  if (written.ends_with(".toml")) {
    KnownHardware file;
    parse_hardware(read_text(written), written, file);
    for (const KnownGpu& gpu : file.gpus) found.push_back(target_of(gpu));
    for (const KnownCpu& cpu : file.cpus) {
      if (auto target = target_of(cpu)) found.push_back(std::move(*target));
    }
    if (found.empty()) bad_input("{}: has no [[gpu]], and no [[cpu]] with its cores", written);
    return found;
  }
  const std::string wanted = letters_of(written);
  for (const Target& machine : machines_) {
    if (letters_of(machine.name) == wanted) return {machine};
  }
  for (const KnownGpu& gpu : known_.gpus) {
    if (letters_of(gpu.name) == wanted) return {target_of(gpu)};
  }
  for (const KnownGpu* gpu : gpus_named(known_, written)) found.push_back(target_of(*gpu));
  for (const KnownCpu& cpu : known_.cpus) {
    const std::string name = letters_of(cpu.name);
    if (wanted.size() < 4 || name.find(wanted) == std::string::npos) continue;
    if (auto target = target_of(cpu)) found.push_back(std::move(*target));
  }
  if (found.empty()) {
    const std::vector<std::string> all = names();
    const std::vector<std::string_view> views(all.begin(), all.end());
    bad_input("--on '{}': no such hardware{}; known: {}; or give a .toml file (docs/predict.md)",
              written, did_you_mean(written, views), joined(all, ", "));
  }
  return found;
}

}  // namespace ridgeline::predict
