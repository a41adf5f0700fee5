// The machines side by side: what they are, and what they were measured to do at most.

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "report/analysis/prose.h"
#include "report/sections/sections.h"

namespace ridgeline::report {
namespace {

using Json = nlohmann::json;

// What a fingerprint says; "" where it does not. Files from elsewhere may hold anything.
const Json* find(const Json& at, const char* key) {
  if (!at.is_object()) return nullptr;
  const auto found = at.find(key);
  return found == at.end() || found->is_null() ? nullptr : &*found;
}
std::string text_at(const Json& at, const char* key) {
  const Json* value = find(at, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string{};
}
std::optional<double> number_at(const Json& at, const char* key) {
  const Json* value = find(at, key);
  return value != nullptr && value->is_number() ? std::optional(value->get<double>())
                                                : std::nullopt;
}
std::string digits_at(const Json& at, const char* key) {
  const auto value = number_at(at, key);
  return value ? plain_text(*value) : std::string{};
}
std::string memory_at(const Json& at, const char* key) {
  const auto value = number_at(at, key);
  return value ? bytes_text(static_cast<std::int64_t>(*value)) : std::string{};
}
const Json& object_at(const Json& at, const char* key) {
  static const Json kNothing = Json::object();
  const Json* value = find(at, key);
  return value != nullptr ? *value : kNothing;
}
std::vector<Json> list_at(const Json& at, const char* key) {
  const Json* value = find(at, key);
  return value != nullptr && value->is_array() ? value->get<std::vector<Json>>()
                                               : std::vector<Json>{};
}

std::string caches_text(const Json& fingerprint) {
  std::vector<std::string> caches;
  for (const Json& cache : list_at(object_at(fingerprint, "cpu"), "caches")) {
    const std::string type = text_at(cache, "type");
    if (type == "instruction") continue;
    caches.push_back(fmt::format("L{} {}", digits_at(cache, "level"), memory_at(cache, "bytes")));
  }
  return joined(caches, ", ");
}

std::string extensions_text(const Json& fingerprint) {
  std::vector<std::string> names;
  for (const Json& name : list_at(object_at(fingerprint, "cpu"), "vector_extensions")) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return joined(names, " ");
}

// The same of each graphics processor; one of several alike is told once.
std::string of_gpus(const Json& fingerprint, const std::function<std::string(const Json&)>& tell) {
  std::vector<std::string> texts;
  for (const Json& gpu : list_at(fingerprint, "gpus")) texts.push_back(tell(gpu));
  if (std::set<std::string>(texts.begin(), texts.end()).size() == 1 && texts.size() > 1) {
    return fmt::format("{} × {}", texts.size(), texts.front());
  }
  return joined(texts, "; ");
}

std::string gpu_text(const Json& fingerprint) {
  std::string text = of_gpus(fingerprint, [](const Json& gpu) { return text_at(gpu, "name"); });
  if (!text.empty()) return text;
  const std::string why = text_at(fingerprint, "no_gpu_reason");
  return why.empty() ? std::string{} : "none: " + why;
}

std::string limits_text(const Json& fingerprint) {
  const auto cpu = number_at(fingerprint, "cpu_limit"),
             memory = number_at(fingerprint, "memory_limit_bytes");
  if (!cpu && !memory) return "none";
  std::vector<std::string> limits;
  if (cpu) limits.push_back(plain_text(*cpu) + " processors");
  if (memory) limits.push_back(bytes_text(static_cast<std::int64_t>(*memory)));
  return joined(limits, ", ");
}

std::string hosting_text(const Json& fingerprint) {
  std::vector<std::string> layers;
  for (const char* key : {"virtualisation", "container"}) {
    if (const std::string text = text_at(fingerprint, key); !text.empty()) layers.push_back(text);
  }
  return layers.empty() ? "none found" : joined(layers, ", ");
}

std::string governor_text(const Json& fingerprint) {
  const Json& cpu = object_at(fingerprint, "cpu");
  std::string text = text_at(cpu, "governor");
  const Json* boost = find(cpu, "boost");
  if (boost != nullptr && boost->is_boolean()) {
    text += fmt::format("{}boost {}", text.empty() ? "" : ", ", boost->get<bool>() ? "on" : "off");
  }
  return text;
}

std::string program_text(const Json& fingerprint) {
  const std::string version = text_at(fingerprint, "version"),
                    revision = text_at(fingerprint, "revision");
  if (version.empty()) return {};
  return revision.empty() ? version : fmt::format("{} ({})", version, revision);
}

std::string libraries_text(const Json& fingerprint) {
  std::vector<std::string> libraries;
  for (const auto& [name, version] : object_at(fingerprint, "libraries").items()) {
    if (version.is_string()) libraries.push_back(name + " " + version.get<std::string>());
  }
  return joined(libraries, ", ");
}

using Telling = std::function<std::string(const Json& fingerprint)>;
using Reader = std::string (*)(const Json& at, const char* key);

struct Property {
  const char* name;
  Telling tell;
};

// Properties that stand in the fingerprint as they are told: by itself, of the CPU, of the GPUs.
Telling plain(Reader read, const char* key) {
  return [=](const Json& fingerprint) { return read(fingerprint, key); };
}
Telling of_cpu(const char* key) {
  return [=](const Json& fingerprint) { return digits_at(object_at(fingerprint, "cpu"), key); };
}
Telling of_each_gpu(Reader read, const char* key) {
  return [=](const Json& fingerprint) {
    return of_gpus(fingerprint, [=](const Json& gpu) { return read(gpu, key); });
  };
}

std::vector<Property> properties() {
  return {
      {"cores", of_cpu("cores")},
      {"logical processors", of_cpu("processors")},
      {"of them usable", of_cpu("usable_processors")},
      {"highest clock (MHz)", of_cpu("max_mhz")},
      {"vector units", extensions_text},
      {"caches", caches_text},
      {"memory", plain(memory_at, "memory_bytes")},
      {"GPU", gpu_text},
      {"GPU memory", of_each_gpu(memory_at, "memory_bytes")},
      {"GPU multiprocessors", of_each_gpu(digits_at, "multiprocessors")},
      {"GPU clock, at most (MHz)", of_each_gpu(digits_at, "max_mhz")},
      {"compute capability", of_each_gpu(text_at, "compute_capability")},
      {"GPU driver", plain(text_at, "gpu_driver")},
      {"operating system", plain(text_at, "os")},
      {"kernel", plain(text_at, "kernel")},
      {"virtualisation", hosting_text},
      {"limits", limits_text},
      {"governor", governor_text},
      {"huge pages", plain(text_at, "huge_pages")},
      {"clock source", plain(text_at, "clock_source")},
      {"compiler", plain(text_at, "compiler")},
      {"compiler flags", plain(text_at, "flags")},
      {"Ridgeline", program_text},
      {"libraries", libraries_text},
  };
}

Table machines_table(const Data& data) {
  Table table;
  table.id = "environments-machines";
  table.title = "Machines side by side";
  table.columns.push_back({.title = "property"});
  std::vector<Json> fingerprints;
  for (const Machine& machine : data.machines()) {
    table.columns.push_back({.title = machine.name});
    Json parsed = Json::parse(machine.environment.fingerprint, nullptr, false);
    fingerprints.push_back(parsed.is_object() ? std::move(parsed) : Json::object());
  }
  const auto add = [&](const char* name, const auto& tell) {
    std::vector<Cell> row = {words(name)};
    bool known = false;
    for (std::size_t i = 0; i < fingerprints.size(); ++i) {
      const std::string text = tell(i);
      known = known || !text.empty();
      row.push_back(words(text.empty() ? "n/a" : text));
    }
    if (known) table.rows.push_back(std::move(row));
  };
  const auto record = [&](std::size_t i) -> const EnvironmentRecord& {
    return data.machines()[i].environment;
  };
  add("host", [&](std::size_t i) { return record(i).host; });
  add("CPU", [&](std::size_t i) { return record(i).cpu; });
  for (const Property& property : properties()) {
    add(property.name, [&](std::size_t i) {
      // A fingerprint that says nothing at all is no machine without limits.
      if (fingerprints[i].empty()) {
        return property.name == std::string("GPU") ? record(i).gpus : std::string{};
      }
      return property.tell(fingerprints[i]);
    });
  }
  add("runs", [&](std::size_t i) {
    const auto count =
        std::ranges::count_if(data.runs(), [&](const RunView& run) { return run.machine == i; });
    return count_text(count);
  });
  add("builds of the program", [&](std::size_t i) {
    return count_text(static_cast<std::int64_t>(data.machines()[i].keys.size()));
  });
  return table;
}

std::set<std::string> devices_of(const Machine& machine) {
  std::set<std::string> devices;
  for (const Ceiling& ceiling : machine.ceilings) devices.insert(ceiling.device);
  return devices;
}

std::string place_name(const Machine& machine, const std::string& device) {
  return device == "cpu" && devices_of(machine).size() == 1 ? machine.name
                                                            : machine.name + " " + device;
}

// The roofs alone: what each machine allows at each intensity.
Figure bare_roofline(const Data& data) {
  Figure figure;
  figure.id = "environments-roofs";
  figure.title = "Roofs of the machines";
  figure.caption =
      "What each device was measured to reach at most, by arithmetic intensity: main memory below "
      "the ridge point, computing above it.";
  figure.x = {.title = "arithmetic intensity", .unit = "FLOP/byte", .logarithmic = true};
  figure.y = {.title = "attainable performance", .unit = "GFLOP/s", .logarithmic = true};
  constexpr double kLeast = 0.1, kMost = 10'000.0;
  for (const Machine& machine : data.machines()) {
    for (const std::string& device : devices_of(machine)) {
      const Roofs roofs = roofs_of(machine.ceilings, device, 0);
      if (roofs.empty()) continue;
      const MemoryRoof& memory = roofs.memory.back();
      for (const ComputeRoof& compute : roofs.compute) {
        if (compute.unit != "fp32" && &compute != &roofs.compute.front()) continue;
        const double ridge = ridge_point(compute, memory), peak = compute.flops_per_second / 1e9;
        const double bandwidth = memory.bytes_per_second / 1e9;
        Series series;
        series.name = fmt::format("{}, {}", place_name(machine, device), compute.unit);
        series.style = SeriesStyle::line;
        series.group = place_name(machine, device);
        if (ridge > kLeast) {
          series.points.push_back({.x = kLeast, .y = kLeast * bandwidth});
        }
        series.points.push_back(
            {.x = std::max(ridge, kLeast),
             .y = peak,
             .label = fmt::format("ridge point: {} FLOP/byte, {}", number_text(ridge),
                                  rate_words(peak * 1e9, "FLOP/s"))});
        if (ridge < kMost) series.points.push_back({.x = kMost, .y = peak});
        figure.series.push_back(std::move(series));
      }
    }
  }
  return figure;
}

// "H200 cuda:0 computes at up to 63.8 TFLOP/s in fp32 …"
Sentence roofs_sentence(const Machine& machine, const std::string& device) {
  const Roofs roofs = roofs_of(machine.ceilings, device, 0);
  const ComputeRoof* fp32 = roofs.find_compute("fp32");
  if (roofs.empty() || fp32 == nullptr) return std::nullopt;
  const MemoryRoof& memory = roofs.memory.back();
  Prose text;
  text.strong(place_name(machine, device));
  text.say(fmt::format(
      " computed at best {} in fp32 and moved at best {} from memory (the upper ends of the ranges "
      "below; they are its roofs): below {} FLOP/byte it is memory that limits it",
      rate_words(fp32->flops_per_second, "FLOP/s"), rate_words(memory.bytes_per_second, "B/s"),
      number_text(ridge_point(*fp32, memory))));
  const ComputeRoof& fastest = roofs.compute.front();
  if (fastest.unit != "fp32") {
    text.say(fmt::format("; its fastest unit, {}, did {}", fastest.unit,
                         rate_words(fastest.flops_per_second, "FLOP/s")));
  }
  text.say(".");
  return text;
}

}  // namespace

Section environments_section(const SectionInput& input) {
  const Data& data = input.data;
  Section section = titled("environments", "Environments");
  if (data.machines().empty()) return section;
  std::vector<Sentence> sentences;
  std::vector<std::string> unmeasured;
  for (const Machine& machine : data.machines()) {
    const std::set<std::string> devices = devices_of(machine);
    if (devices.empty()) unmeasured.push_back(machine.name);
    for (const std::string& device : devices) {
      sentences.push_back(roofs_sentence(machine, device));
    }
  }
  if (const auto text = paragraph_of(sentences)) section.blocks.emplace_back(*text);
  if (!unmeasured.empty()) {
    section.blocks.emplace_back(
        Notice{.severity = "note",
               .name = "ceilings not measured",
               .pieces = {{.text = fmt::format("No ceilings were measured on {}: runs there have "
                                               "no roofs. 'ridgeline env --measure' measures them.",
                                               list_text(unmeasured))}}});
  }
  Runs all;
  for (const RunView& run : data.runs()) all.push_back(&run);
  add_figure(section, bare_roofline(data));
  Section rest = folded("environments-all", "Machines and measured ceilings");
  rest.blocks.emplace_back(machines_table(data));
  add_exhibit(rest, data, {table_named("ceilings"), "environments-ceilings", all});
  section.sections.push_back(std::move(rest));
  return section;
}

}  // namespace ridgeline::report
