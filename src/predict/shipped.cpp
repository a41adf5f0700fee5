#include "predict/shipped.h"

#include <algorithm>
#include <set>

#include "base/embedded.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/toml_entry.h"

namespace ridgeline::predict {
namespace {

constexpr const char* kFile = "src/predict/efficiencies.toml";

Shipped entry_of(const toml::table& table, const std::string& file) {
  TomlEntry entry(table, "[[efficiency]]", file);
  Shipped shipped;
  const std::string family = entry.required_text("family");
  if (family != "cpu" && family != "gpu") entry.refuse_at("family", "must be cpu or gpu");
  shipped.family = family == "gpu" ? Family::gpu : Family::cpu;
  shipped.backend = entry.required_text("backend");
  shipped.source = entry.required_text("source");
  shipped.devices = entry.texts("devices");
  const auto positive = [&](const char* key) {
    const std::optional<double> value = entry.number(key, false);
    if (!value) entry.refuse(std::string("needs '") + key + "'");
    return *value;
  };
  shipped.efficiencies.usual = positive("usual");
  shipped.efficiencies.step_seconds = entry.number("step_us", true).value_or(0.0) * 1e-6;
  for (const Unknown unknown : {Unknown::batch, Unknown::network, Unknown::device}) {
    const std::string key = "spread_" + std::string(name_of(unknown));
    if (const auto spread = entry.number(key.c_str(), true)) shipped.spread[unknown] = *spread;
  }
  for (const auto& [kind, words] : entry.words_by_name("slowdown")) {
    const auto value = words.size() == 1 ? number_in<double>(words[0]) : std::nullopt;
    if (!value || *value <= 0.0) {
      entry.refuse_at("slowdown", fmt::format("'{}' must be a number above 0", kind));
    }
    shipped.efficiencies.slowdown[kind] = *value;
  }
  entry.finish();
  return shipped;
}

// Backends with runs of at least two networks.
std::set<std::pair<Family, std::string>> learnable(const std::vector<Observation>& seen) {
  std::map<std::pair<Family, std::string>, std::set<std::string>> models;
  for (const Observation& one : seen) models[{one.family, one.backend}].insert(one.model);
  std::set<std::pair<Family, std::string>> found;
  for (const auto& [key, names] : models) {
    if (names.size() > 1) found.insert(key);
  }
  return found;
}

}  // namespace

std::vector<Shipped> parse_efficiencies(std::string_view text, const std::string& file) {
  const toml::table document = parse_toml(text, file);
  for (const auto& [key, node] : document) {
    if (key == "efficiency") continue;
    bad_input("{}, line {}: unknown table '{}'; known: [[efficiency]]", file,
              node.source().begin.line, key.str());
  }
  std::vector<Shipped> all;
  for (const toml::table* table : toml_tables(document, "efficiency", file)) {
    all.push_back(entry_of(*table, file));
  }
  return all;
}

std::vector<Shipped> shipped_efficiencies() {
  const std::optional<std::string_view> text = embedded_file(kFile);
  ensure(text.has_value(), "the program does not carry {}", kFile);
  return parse_efficiencies(*text, kFile);
}

std::vector<Shipped> learn_all(const std::vector<Observation>& seen, const std::string& source) {
  const Spreads spreads = spreads_of(hold_back(seen));
  std::vector<Shipped> all;
  for (const auto& [family, backend] : learnable(seen)) {
    std::vector<const Observation*> runs;
    std::set<std::string> devices;
    for (const Observation& one : seen) {
      if (one.family != family || one.backend != backend) continue;
      runs.push_back(&one);
      devices.insert(one.device);
    }
    Shipped shipped;
    shipped.family = family;
    shipped.backend = backend;
    shipped.devices.assign(devices.begin(), devices.end());
    shipped.efficiencies = learn(runs, nullptr);
    for (const Unknown unknown : {Unknown::batch, Unknown::network, Unknown::device}) {
      const auto spread = spreads.find({family, backend, unknown});
      if (spread != spreads.end()) shipped.spread[unknown] = spread->second;
    }
    shipped.source = fmt::format("{} rows of {}", runs.size(), source);
    all.push_back(std::move(shipped));
  }
  return all;
}

std::string efficiencies_toml(const std::vector<Shipped>& all) {
  std::string text =
      "# How many times longer than at the roofs steps take, by kind, backend and family of "
      "devices; "
      "docs/predict.md tells\n# how. Written by ridgeline predict --learn.\n"
      "#\n# usual     of a kind that is not listed\n"
      "# step_us   for each step of a plan\n"
      "# spread_X  logarithm of the factor that 9 of 10 errors stay within where X is not known\n";
  for (const Shipped& one : all) {
    text += fmt::format(
        "\n[[efficiency]]\nfamily = \"{}\"\nbackend = \"{}\"\ndevices = [\"{}\"]\n"
        "source = \"{}\"\nusual = {:.4g}\nstep_us = {:.4g}\n",
        name_of(one.family), one.backend, joined(one.devices, "\", \""), one.source,
        one.efficiencies.usual, one.efficiencies.step_seconds * 1e6);
    for (const auto& [unknown, spread] : one.spread) {
      text += fmt::format("spread_{} = {:.4g}\n", name_of(unknown), spread);
    }
    text += "[efficiency.slowdown]\n";
    for (const auto& [kind, slowdown] : one.efficiencies.slowdown) {
      text += fmt::format("\"{}\" = {:.4g}\n", kind, slowdown);
    }
  }
  return text;
}

}  // namespace ridgeline::predict
