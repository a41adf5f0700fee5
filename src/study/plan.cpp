#include "study/plan.h"

#include <algorithm>
#include <set>

#include "backends/registry.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "devices/device.h"
#include "peers/peer_name.h"
#include "study/command_words.h"
#include "study/estimate.h"

namespace ridgeline::study {
namespace {

// Memory that the rest of the program and of the system needs beside a step's own.
constexpr double kMemoryShare = 0.9;
constexpr double kLinksSeconds = 30.0;  // of measuring them

// What a part uses of the data and weights that it names.
struct Sources {
  std::string data;        // what --data takes; empty: the command's own
  std::string data_name;   // as the study calls it, for what is known of its size
  std::string weights;     // a file; empty: none
  std::string substitute;  // what takes the place of what; empty: nothing
  std::string missing;     // why it cannot be done; empty: it can
};

class Planner {
 public:
  Planner(const Study& study, const StudyChoice& options, Capabilities& machine)
      : study_(study), options_(options), machine_(machine), estimator_(machine) {}

  std::vector<PlannedItem> plan() {
    check_only();
    for (const Part& part : study_.parts(options_.scale)) {
      const bool wanted =
          options_.only.empty() ||
          std::find(options_.only.begin(), options_.only.end(), part.id) != options_.only.end();
      if (wanted) add(part);
    }
    for (std::size_t i = 0; i < items_.size(); ++i) {
      items_[i].record.number = static_cast<std::int64_t>(i);
    }
    return std::move(items_);
  }

 private:
  void check_only() const {
    std::vector<std::string_view> known;
    for (const Part& part : study_.parts(options_.scale)) known.push_back(part.id);
    for (const std::string& id : options_.only) {
      if (std::find(known.begin(), known.end(), id) != known.end()) continue;
      bad_input("--only {}: study {} has no such part at scale {}{}{} There are: {}", id,
                study_.definition.name, name_of(options_.scale), did_you_mean(id, known),
                nearest(id, known) ? "" : ".", joined(known, ", "));
    }
  }

  // "best" becomes the first of NVIDIA's GPUs, or the processor where there is none.
  std::vector<std::string> devices_for(const Part& part) {
    std::vector<std::string> devices = part.devices;
    for (std::string& device : devices) {
      if (device != "best") continue;
      const std::vector<std::string> here = machine_.devices();
      const auto gpu = std::find_if(here.begin(), here.end(), [](const std::string& name) {
        return name.starts_with("cuda");
      });
      device = gpu != here.end() ? *gpu : "cpu";
    }
    return devices;
  }

  std::vector<ExecutorName> executors_of(const Part& part) {
    const bool best =
        std::find(part.devices.begin(), part.devices.end(), "best") != part.devices.end();
    std::vector<ExecutorName> executors;
    std::set<std::string> seen;
    std::vector<std::string> backends = part.backends;
    if (backends.empty()) {
      backends = {std::string(own_backend("cpu")), std::string(kAuto)};
    }
    for (const std::string& backend : backends) {
      for (const std::string& device : devices_of(backend, devices_for(part))) {
        const ExecutorName executor{split_backend(backend).backend, device};
        const auto usual = [&] { return std::string(default_backend(device_kind(device))); };
        // Where nothing else was asked for, each device gets its usual backend.
        if (part.backends.empty() && backend != usual()) continue;
        // On the best device of a processor alone, auto would only repeat what its own kernels do.
        if (best && backend == kAuto && seen.contains(usual())) continue;
        if (seen.insert(executor.key()).second) executors.push_back(executor);
      }
    }
    return executors;
  }

  Sources sources_of(const Part& part) {
    Sources sources;
    if (!part.data.empty()) find_data(part, sources);
    if (part.weights.empty() || !sources.missing.empty()) return sources;
    if (const std::optional<std::string> file = machine_.find_weights(part.weights)) {
      sources.weights = *file;
    } else if (part.weights_required) {
      sources.missing = fmt::format(
          "there are no pre-trained weights: put {}.safetensors, .pth or .pt into the data folder",
          part.weights);
    } else {
      if (!sources.substitute.empty()) sources.substitute += "; ";
      sources.substitute +=
          fmt::format("random weights in place of the pre-trained ones of {}", part.weights);
    }
    return sources;
  }

  void find_data(const Part& part, Sources& sources) {
    for (const std::string& name : part.data) {
      if (const std::optional<std::string> found = machine_.find_data(name)) {
        sources.data = *found;
        sources.data_name = name;
        return;
      }
    }
    for (const std::string& name : part.substitute) {
      if (const std::optional<std::string> found = machine_.find_data(name)) {
        sources.data = *found;
        sources.data_name = name;
        sources.substitute =
            fmt::format("{} in place of {}",
                        is_synthetic(name) ? fmt::format("synthetic images ({})", name) : name,
                        part.data.front());
        return;
      }
    }
    sources.missing =
        fmt::format("{} is not here, and {}; --data DIR names the folder that contains it",
                    joined(part.data, " or "),
                    part.substitute.empty() ? "the study names no substitute"
                                            : "neither is " + joined(part.substitute, " or "));
  }

  void leave_out(const Part& part, const std::string& key, const std::string& title,
                 const std::string& reason) {
    if (!keys_.insert(part.id + "/" + key).second) return;
    PlannedItem item;
    item.record.key = part.id + "/" + key;
    item.record.title = title;
    item.record.command = std::string(name_of(part.command));
    item.record.status = ItemStatus::left_out;
    item.record.reason = reason;
    items_.push_back(std::move(item));
  }

  // The executors that can run at all; the others are left out by name, once for the part.
  std::vector<ExecutorName> usable(const Part& part) {
    std::vector<ExecutorName> here;
    for (const ExecutorName& executor : executors_of(part)) {
      const std::string reason = machine_.refuse(executor);
      if (reason.empty()) {
        here.push_back(executor);
      } else {
        leave_out(part, executor.key(), executor.text(), reason);
      }
    }
    return here;
  }

  void add(const Part& part) {
    if (part.command == PartCommand::ceilings) {
      add_ceilings(part);
      return;
    }
    const Sources sources = sources_of(part);
    if (!sources.missing.empty()) {
      const char* what = sources.data.empty() && !part.data.empty() ? "data" : "weights";
      leave_out(part, what, what, sources.missing);
      return;
    }
    const std::optional<Part> here = with_ranks(part);
    if (!here) return;
    const std::vector<ExecutorName> executors = usable(part);
    for (const Configuration& configuration : expand(part)) {
      try {
        add(*here, configuration, sources, executors);
      } catch (const Error& error) {
        if (error.exit_code() != 2) throw;
        bad_input("{}: part {}: {}: {}", study_.definition.source, part.id, configuration.text(),
                  error.what());
      }
    }
  }

  // With the numbers of ranks that this machine has processors for; nothing: it cannot do the part.
  std::optional<Part> with_ranks(const Part& part) {
    Part here = part;
    if (part.ranks.empty()) return here;
    if (const std::string reason = machine_.refuse_ranks(); !reason.empty()) {
      leave_out(part, "ranks", "several ranks", reason);
      return std::nullopt;
    }
    for (const std::int64_t ranks : part.ranks) {
      if (ranks <= machine_.processors()) continue;
      leave_out(part, fmt::format("ranks={}", ranks), fmt::format("{} ranks", ranks),
                fmt::format("this machine has {} processors", machine_.processors()));
    }
    std::erase_if(here.ranks, [&](std::int64_t ranks) { return ranks > machine_.processors(); });
    if (here.ranks.empty()) return std::nullopt;
    return here;
  }

  void add_links(const Part& part) {
    const std::optional<Part> here = with_ranks(part);
    if (!here) return;
    for (const std::int64_t ranks : here->ranks) {
      PlannedItem item;
      item.record.key = fmt::format("{}/ranks={}", part.id, ranks);
      item.record.title = fmt::format("links between {} ranks", ranks);
      item.record.estimated_seconds = kLinksSeconds;
      item.words = {"env", "--measure", "--ranks", std::to_string(ranks)};
      item.record.command = shell_text(item.words);
      items_.push_back(std::move(item));
    }
  }

  void add_ceilings(const Part& part) {
    if (!part.ranks.empty()) {
      add_links(part);
      return;
    }
    std::vector<std::string> wanted = devices_for(part);
    const std::vector<std::string> here = machine_.devices();
    if (wanted.empty()) wanted = here;
    for (std::string& device : wanted) {
      device = device_name(device);
      if (std::find(here.begin(), here.end(), device) == here.end()) {
        leave_out(part, device, "ceilings of " + device,
                  machine_.refuse({std::string(kAuto), device}));
        continue;
      }
      PlannedItem item;
      item.record.key = part.id + "/" + device;
      item.record.title = "ceilings of " + device;
      if (machine_.ceilings_known(device)) item.record.title += ", which the store has";
      item.record.estimated_seconds = estimator_.ceilings_seconds(device);
      item.ceilings_of = device;
      item.words = {"env", "--measure", "--device", device};
      item.record.command = shell_text(item.words);
      items_.push_back(std::move(item));
    }
  }

  // Why an executor cannot compute a configuration; empty: it can.
  std::string refuse(const ExecutorName& executor, const Configuration& configuration,
                     const StepDemand& demand) {
    if (is_peer(executor.backend)) {
      const PeerName peer = parse_peer(executor.backend);
      if (std::string reason = peer.info->refuse(configuration.model); !reason.empty()) {
        return reason;
      }
    }
    const std::optional<std::int64_t> memory = machine_.memory_bytes(executor.device);
    if (memory &&
        static_cast<double>(demand.memory) > kMemoryShare * static_cast<double>(*memory)) {
      return fmt::format("not enough memory: it needs about {}, {} has {}",
                         bytes_text(demand.memory), executor.device, bytes_text(*memory));
    }
    return {};
  }

  void add(const Part& part, const Configuration& configuration, const Sources& sources,
           const std::vector<ExecutorName>& executors) {
    const StepDemand demand = estimator_.demand(part, configuration, sources.data_name);
    const std::string key = key_of(part, configuration);
    std::vector<ExecutorName> able;
    for (const ExecutorName& executor : executors) {
      if (configuration.precision) {
        const std::string reason = machine_.refuse_precision(executor, *configuration.precision);
        if (!reason.empty()) {
          const std::string_view precision = name_of(*configuration.precision);
          // Once for the part, whatever the network.
          leave_out(part, fmt::format("{}/{}", precision, executor.key()),
                    fmt::format("{} in {}", executor.text(), precision), reason);
          continue;
        }
      }
      const std::string reason = refuse(executor, configuration, demand);
      if (reason.empty()) {
        able.push_back(executor);
      } else {
        leave_out(part, key + "/" + executor.key(), configuration.text() + ": " + executor.text(),
                  reason);
      }
    }
    if (able.empty()) return;
    const bool together =
        part.command == PartCommand::bench || part.command == PartCommand::inference;
    if (together) {
      add_item(part, configuration, sources, demand, able, key);
      return;
    }
    for (const ExecutorName& executor : able) {
      add_item(part, configuration, sources, demand, {executor}, key + "/" + executor.key());
    }
  }

  void add_item(const Part& part, const Configuration& configuration, const Sources& sources,
                const StepDemand& demand, const std::vector<ExecutorName>& executors,
                const std::string& key) {
    PlannedItem item;
    item.words = command_words({.part = part,
                                .configuration = configuration,
                                .executors = executors,
                                .data = sources.data,
                                .weights = sources.weights,
                                .threads = options_.threads});
    std::vector<std::string> names;
    for (const ExecutorName& executor : executors) {
      names.push_back(executor.text());
      item.record.estimated_seconds += estimator_.seconds(part, demand, executor);
    }
    item.record.key = part.id + "/" + key;
    item.record.title = configuration.text() + ": " + joined(names, ", ");
    item.record.command = shell_text(item.words);
    item.record.substitute = sources.substitute;
    ensure(keys_.insert(item.record.key).second, "two items have the key '{}'", item.record.key);
    items_.push_back(std::move(item));
  }

  const Study& study_;
  const StudyChoice& options_;
  Capabilities& machine_;
  Estimator estimator_;
  std::vector<PlannedItem> items_;
  std::set<std::string> keys_;
};

}  // namespace

std::vector<PlannedItem> plan_study(const Study& study, const StudyChoice& options,
                                    Capabilities& machine) {
  return Planner(study, options, machine).plan();
}

std::string part_of(const StudyItemRecord& item) { return item.key.substr(0, item.key.find('/')); }

std::string shell_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n'\"\\$*?;&|<>()[]{}~#`!") == std::string::npos;
    std::string quoted;
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += (text.empty() ? "" : " ") + (plain ? word : "'" + quoted + "'");
  }
  return text;
}

}  // namespace ridgeline::study
