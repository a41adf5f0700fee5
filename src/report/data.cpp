#include "report/data.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/compare/run_series.h"
#include "analysis/roofline/stored.h"
#include "analysis/stats/summary.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"
#include "measure/memory_ledger.h"
#include "peers/peer_name.h"
#include "report/analysis/held_runs.h"
#include "report/analysis/ratios.h"
#include "store/identity_fields.h"

namespace ridgeline::report {
namespace {

std::optional<double> number_of(const RunRecord& run, const std::string& name) {
  const auto found = run.numbers.find(name);
  return found == run.numbers.end() ? std::nullopt : std::optional(found->second);
}

// Values with the blocks that they were measured in.
struct BlockedSeries {
  std::vector<double> values;
  std::vector<std::int64_t> blocks;

  void add(const Sample& sample, double value) {
    // Blocks of different processes are different ones.
    blocks.push_back(sample.process * 1'000'000 + sample.block);
    values.push_back(value);
  }
  [[nodiscard]] std::optional<Estimate> median() const {
    if (values.empty()) return std::nullopt;
    const MedianInterval found = block_bootstrap(values, blocks);
    return Estimate{found.median, found.low, found.high, static_cast<std::int64_t>(values.size())};
  }
};

Estimate inverse(const Estimate& seconds, double samples) {
  return {samples / seconds.value, samples / seconds.high, samples / seconds.low, seconds.samples};
}

// What the run's own summary says, which was made from the same samples; else from the samples.
std::optional<Estimate> wall_seconds(const RunRecord& run, const std::vector<Sample>& samples) {
  BlockedSeries wall;
  for (const Sample& sample : samples) {
    if (sample.kind == SampleKind::measured) wall.add(sample, sample.wall_seconds);
  }
  const auto median = number_of(run, "median_seconds"), low = number_of(run, "ci_low_seconds"),
             high = number_of(run, "ci_high_seconds");
  if (median && low && high && !wall.values.empty()) {
    return Estimate{*median, *low, *high, static_cast<std::int64_t>(wall.values.size())};
  }
  return wall.median();
}

// Iterations that need not be waited for one by one follow each other faster on a device that
// queues them: their pace is what training reaches.
std::optional<Estimate> queued_seconds(const std::vector<Sample>& samples) {
  BlockedSeries queued;
  for (const Sample& sample : samples) {
    if (sample.kind == SampleKind::queued && sample.device_seconds) {
      queued.add(sample, *sample.device_seconds);
    }
  }
  return queued.median();
}

std::optional<Estimate> epoch_rate(const std::vector<EpochRecord>& epochs) {
  std::vector<double> rates;
  for (const EpochRecord& epoch : epochs) {
    rates.push_back(static_cast<double>(epoch.samples) / epoch.seconds);
  }
  if (rates.empty()) return std::nullopt;
  const MedianInterval found = median_interval(rates);
  return Estimate{found.median, found.low, found.high, static_cast<std::int64_t>(rates.size())};
}

void measure(RunView& view, const Store& store) {
  const RunRecord& run = view.run;
  const auto batch = static_cast<double>(run.work.batch);
  const std::vector<Sample> samples = store.samples(run.id);
  view.seconds = wall_seconds(run, samples);
  if (view.seconds) {
    view.rate = inverse(queued_seconds(samples).value_or(*view.seconds), batch);
  } else if (run.command == "train") {
    view.rate = epoch_rate(steady_epochs(view.epochs));
    if (view.rate) view.seconds = inverse(*view.rate, batch);
  }
  const auto flops =
      number_of(run, run.work.kind == "inference" ? "forward_flops" : "training_flops");
  if (view.rate && flops && batch > 0.0) view.flops_per_second = *flops * view.rate->value / batch;
}

std::string option_of(const Work& work, const std::string& name) {
  const auto found = work.settings.find(name);
  return found == work.settings.end() ? std::string() : found->second;
}

std::string machine_name(const EnvironmentRecord& environment) {
  if (!environment.label.empty()) return environment.label;
  std::string name = environment.gpus.empty() ? environment.cpu : environment.gpus;
  // "Intel(R) Xeon(R) Processor @ 2.80GHz" is "Intel Xeon @ 2.80GHz".
  for (const std::string_view noise : {"(R)", "(TM)", "(r)", "(tm)", " Processor", " CPU"}) {
    for (std::size_t at = name.find(noise); at != std::string::npos; at = name.find(noise)) {
      name.erase(at, noise.size());
    }
  }
  if (name.empty()) name = environment.host;
  return name.empty() ? "unknown machine" : name;
}

// What the study's file says; its name alone where this program cannot read it.
void read_definition(StudyView& view, const StudyRecord& record) {
  view.definition = {};
  view.parts.clear();
  try {
    const study::Study study = study::parse_study(record.definition, record.name);
    view.definition = study.definition;
    for (const std::vector<study::Part>* parts : {&study.small, &study.full}) {
      for (const study::Part& part : *parts) view.parts[part.id] = part.title;
    }
  } catch (const Error&) {
    view.definition.title = record.name;
  }
  view.definition.name = record.name;
}

bool is_sensor_of_device(const std::string& name) { return name.starts_with("gpu_"); }

}  // namespace

Estimate ratio_of(const Estimate& b, const Estimate& a) {
  Estimate ratio;
  ratio.value = b.value / a.value;
  ratio.samples = std::min(a.samples, b.samples);
  const auto distance = [](double end, double value) {
    return end > 0.0 && value > 0.0 ? std::log(end / value) : 0.0;
  };
  // What moves B up or A down moves the ratio up; both do so independently.
  ratio.low =
      ratio.value * std::exp(-std::hypot(distance(b.low, b.value), distance(a.high, a.value)));
  ratio.high =
      ratio.value * std::exp(std::hypot(distance(b.high, b.value), distance(a.low, a.value)));
  return ratio;
}

std::string RunView::executor(const std::string& more) const {
  const Executor& by = run.executor;
  std::string text = by.backend;
  // The name of a peer tells its device, if it is the first of its kind.
  std::string_view kind = by.device;
  if (kind.ends_with(":0")) kind.remove_suffix(2);
  const bool told = is_peer(by.backend) && by.backend.ends_with(kind);
  if (by.device != "cpu" && !told) text += " on " + by.device;
  if (run.work.precision != "fp32") text += " in " + run.work.precision;
  std::string options = options_text(by);
  if (!options.empty() && !more.empty()) options += ", ";
  options += more;
  return options.empty() ? text : fmt::format("{} ({})", text, options);
}

std::string RunView::resumed() const {
  const std::int64_t done = run.work.first_epoch;
  if (done > 0) return fmt::format("resumed after epoch {}", done);
  return number_of(run, "former_seconds") ? "resumed in its first epoch" : "";
}

std::string RunView::word(const std::string& axis) const {
  if (const std::optional<double> value = number(axis)) return fmt::format("{:.10g}", *value);
  if (const IdentityField* field = find_identity_field(axis)) return field->text(run);
  return option_of(run.work, axis);
}

std::optional<double> RunView::number(const std::string& axis) const {
  if (axis == "epochs") return epochs.empty() ? 0.0 : static_cast<double>(epochs.back().epoch);
  if (axis == "samples") {
    const std::int64_t samples = run.work.data_samples;
    return samples > 0 ? std::optional(static_cast<double>(samples)) : std::nullopt;
  }
  if (const IdentityField* field = find_identity_field(axis)) return field->value(run);
  if (const auto known = number_of(run, axis)) return known;
  return number_in<double>(option_of(run.work, axis));
}

Data::~Data() = default;

const HeldRuns& Data::held_runs() const {
  if (!held_runs_) held_runs_ = std::make_unique<HeldRuns>(store_);
  return *held_runs_;
}

Ratios& Data::ratios() const {
  if (!ratios_) ratios_ = std::make_unique<Ratios>(*this);
  return *ratios_;
}

Data::Data(const Store& store) : store_(store) {
  read_machines();
  read_runs();
  read_studies();
}

void Data::read_machines() {
  std::map<std::vector<std::string>, std::size_t> known;
  std::map<std::string, std::string> newest;  // environment: its last run
  for (const RunRecord& run : store_.runs()) {
    newest[run.environment] = std::max(newest[run.environment], run.started);
  }
  std::vector<EnvironmentRecord> environments = store_.environments();
  std::ranges::stable_sort(environments,
                           [&](const EnvironmentRecord& a, const EnvironmentRecord& b) {
                             return newest[a.key] < newest[b.key];
                           });
  for (EnvironmentRecord& environment : environments) {
    const auto [place, fresh] = known.try_emplace(environment.machine(), machines_.size());
    if (fresh) machines_.push_back({.name = machine_name(environment), .environment = environment});
    Machine& machine = machines_[place->second];
    machine.keys.push_back(environment.key);
    machine.environment = environment;
    machine_of_key_[environment.key] = place->second;
    // Ceilings of a device come together.
    const std::vector<Ceiling> measured = store_.ceilings(environment.key);
    std::set<std::string> devices;
    for (const Ceiling& ceiling : measured) devices.insert(ceiling.device);
    std::erase_if(machine.ceilings,
                  [&](const Ceiling& old) { return devices.contains(old.device); });
    machine.ceilings.insert(machine.ceilings.end(), measured.begin(), measured.end());
  }
  std::map<std::string, int> names;
  for (Machine& machine : machines_) {
    const int count = ++names[machine.name];
    if (count > 1) machine.name += fmt::format(" ({})", count);
  }
}

void Data::read_runs() {
  for (RunRecord& run : store_.runs()) {
    if (run.status != RunStatus::complete) {
      unfinished_.push_back(std::move(run));
      continue;
    }
    RunView view;
    const auto machine = machine_of_key_.find(run.environment);
    if (machine == machine_of_key_.end()) {
      // A run that names no environment: a machine that nothing is known of.
      machine_of_key_[run.environment] = machines_.size();
      machines_.push_back({.name = "unknown machine", .keys = {run.environment}});
    }
    view.machine = machine_of_key_.at(run.environment);
    view.part = run.item.substr(0, run.item.find('/'));
    view.epochs = store_.epochs(run.id);
    view.findings = store_.findings(run.id);
    view.run = std::move(run);
    measure(view, store_);
    runs_.push_back(std::move(view));
  }
}

void Data::read_studies() {
  // The one that counts for each machine: full before small, newer before older.
  std::map<std::pair<std::string, std::size_t>, StudyRecord> chosen;
  for (const StudyRecord& record : store_.studies()) {
    const auto machine = machine_of_key_.find(record.environment);
    if (machine == machine_of_key_.end()) continue;
    StudyRecord& best = chosen[{record.name, machine->second}];
    if (best.uuid.empty() || record.scale <= best.scale) best = record;
  }
  std::map<std::string, std::size_t> places;
  for (const auto& [key, record] : chosen) {
    const auto [place, fresh] = places.try_emplace(record.name, studies_.size());
    if (fresh) studies_.emplace_back();
    StudyView& study = studies_[place->second];
    // Machines may have had different versions of the file: the newest tells what to show.
    if (std::ranges::all_of(study.records, [&](const StudyRecord& other) {
          return other.started <= record.started;
        })) {
      read_definition(study, record);
    }
    study.records.push_back(record);
    std::map<std::string, std::string> done;  // key: substitute
    for (StudyItemRecord& item : store_.study_items(record.uuid)) {
      if (item.status == ItemStatus::done) done[item.key] = item.substitute;
      study.items.push_back(std::move(item));
    }
    for (RunView& view : runs_) {
      if (view.run.study != record.uuid) continue;
      const auto item = done.find(view.run.item);
      if (item == done.end()) continue;
      view.substitute = item->second;
      study.runs.push_back(&view);
    }
  }
}

Runs Data::other_runs() const {
  Runs others;
  for (const RunView& view : runs_) {
    if (view.run.study.empty()) others.push_back(&view);
  }
  return others;
}

const EpochRecord* last_tested(const RunView& run) {
  const auto last = std::find_if(run.epochs.rbegin(), run.epochs.rend(),
                                 [](const auto& epoch) { return epoch.test_accuracy.has_value(); });
  return last == run.epochs.rend() ? nullptr : &*last;
}

const Machine* Data::find_machine(const std::string& environment) const {
  const auto found = machine_of_key_.find(environment);
  return found == machine_of_key_.end() ? nullptr : &machines_[found->second];
}

const RunView* Data::find(RunId run) const {
  const auto found =
      std::ranges::find_if(runs_, [&](const RunView& view) { return view.run.id == run; });
  return found == runs_.end() ? nullptr : &*found;
}

Roofs Data::roofs(const RunView& run) const {
  const Executor& by = run.run.executor;
  // Threads of the host are no matter of a graphics processor's roofs.
  return roofs_of(machine_of(run).ceilings, by.device, by.device == "cpu" ? by.threads : 0);
}

std::optional<RooflinePoint> Data::point(const RunView& run) const {
  const auto known = points_.find(run.run.id);
  if (known != points_.end()) return known->second;
  std::optional<RooflinePoint> point;
  const std::vector<StepTime> steps = store_.steps(run.run.id);
  const Roofs roofs_here = roofs(run);
  if (!steps.empty() && !roofs_here.empty()) {
    double sum = 0.0;
    for (const StepTime& step : steps) sum += step.seconds;
    const IterationTime iteration =
        iteration_of(store_.samples(run.run.id)).value_or(IterationTime{sum, std::nullopt});
    point = network_point(run.run.work.model, steps, roofs_here, iteration);
  }
  return points_[run.run.id] = std::move(point);
}

std::optional<SensorSummary> Data::sensor(const RunView& run, const std::string& name) const {
  const auto [place, fresh] = readings_.try_emplace(run.run.id);
  if (fresh) place->second = store_.readings(run.run.id);
  const std::string device = is_sensor_of_device(name) ? run.run.executor.device : "cpu";
  SensorSummary summary;
  double sum = 0.0;
  for (const Reading& reading : place->second) {
    if (reading.sensor != name || reading.device != device) continue;
    summary.low = summary.readings == 0 ? reading.value : std::min(summary.low, reading.value);
    summary.high = summary.readings == 0 ? reading.value : std::max(summary.high, reading.value);
    sum += reading.value;
    ++summary.readings;
  }
  if (summary.readings == 0) return std::nullopt;
  summary.mean = sum / static_cast<double>(summary.readings);
  return summary;
}

std::optional<double> Data::device_memory_bytes(const RunView& run) const {
  if (run.run.executor.device == "cpu") return std::nullopt;
  if (const auto peak = number_of(run.run, "peak_memory_bytes")) return peak;
  // What all programs together hold would not be the run's.
  if (const auto used = sensor(run, "gpu_process_memory_bytes")) return used->high;
  return std::nullopt;
}

std::optional<double> Data::process_memory_bytes(const RunView& run) const {
  // Sensors see our process; what a peer's has is told in its ledger.
  if (is_peer(run.run.executor.backend)) {
    const auto bytes = bytes_of(store_.memory(run.run.id), "cpu", "peer process");
    return bytes ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
  }
  if (const auto rss = sensor(run, "rss_bytes")) return rss->high;
  return std::nullopt;
}

}  // namespace ridgeline::report
