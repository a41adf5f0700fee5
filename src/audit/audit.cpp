#include "audit/audit.h"

#include <algorithm>
#include <set>

#include "analysis/roofline/roofs.h"
#include "audit/read/read.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "models/model.h"
#include "store/store.h"

namespace ridgeline::audit {
namespace {

// More of one kind say nothing new.
constexpr std::size_t kMostOfOneCheck = 6;

void check_defaults(const Defaults& defaults, Facts& facts) {
  if (!defaults.model.empty() && zoo_name(defaults.model).empty()) {
    (void)find_model(defaults.model);  // throws, with the nearest name
  }
  if (!defaults.hardware.empty() && facts.hardware(defaults.hardware) == nullptr) {
    const std::vector<std::string> names = facts.hardware_names();
    const std::vector<std::string_view> views(names.begin(), names.end());
    bad_input("--hardware '{}': no data sheet{}; known: {}", defaults.hardware,
              did_you_mean(defaults.hardware, views), joined(names, ", "));
  }
}

// Every check's first findings, and how many more there are.
std::vector<Finding> run_checks(Context& context) {
  std::vector<Finding> all;
  for (const Check& check : all_checks()) {
    std::vector<Finding> found_here;
    check.run(context, found_here);
    std::ranges::stable_sort(found_here, std::greater<>(), &Finding::severity);
    const std::size_t more =
        found_here.size() > kMostOfOneCheck ? found_here.size() - kMostOfOneCheck : 0;
    found_here.resize(found_here.size() - more);
    if (more > 0) {
      found_here.back().cause +=
          fmt::format("{}({} more of this kind)", found_here.back().cause.empty() ? "" : " ", more);
    }
    std::ranges::move(found_here, std::back_inserter(all));
  }
  std::ranges::stable_sort(all, std::greater<>(), &Finding::severity);
  return all;
}

void note_what_is_known(Context& context, FileAudit& audit) {
  std::set<std::string> networks, hardware, unknown_models, unknown_devices;
  for (const Group& group : context.groups()) {
    const std::size_t row = group.first();
    if (const NetworkFacts* network = context.network(row)) {
      networks.insert(fmt::format("{} at {}x{}", network->name, network->image, network->image));
    } else if (!context.model(row).empty()) {
      unknown_models.insert(context.model(row));
    }
    if (const HardwareFacts* device = context.hardware(row)) {
      hardware.insert(device->name);
    } else if (!context.executor(row).empty()) {
      unknown_devices.insert(context.executor(row));
    }
  }
  audit.networks.assign(networks.begin(), networks.end());
  audit.hardware.assign(hardware.begin(), hardware.end());
  if (networks.empty() && unknown_models.empty()) {
    audit.not_checked.push_back("work and parameters: no network is named (--model)");
  }
  if (!unknown_models.empty()) {
    audit.not_checked.push_back(
        fmt::format("work of networks that the zoo does not have: {}",
                    listed({unknown_models.begin(), unknown_models.end()})));
  }
  if (hardware.empty() && unknown_devices.empty()) {
    audit.not_checked.push_back("roofs: no hardware is named (--hardware)");
  }
  if (!unknown_devices.empty()) {
    audit.not_checked.push_back(
        fmt::format("roofs of devices without a data sheet: {}",
                    listed({unknown_devices.begin(), unknown_devices.end()})));
  }
}

}  // namespace

std::size_t FileAudit::count(Severity severity) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      findings, [&](const FileFinding& one) { return one.finding.severity == severity; }));
}

std::size_t Audit::count(Severity severity) const {
  std::size_t sum = 0;
  for (const FileAudit& file : files) sum += file.count(severity);
  return sum;
}

FileAudit audit_table(RawTable raw, const Request& request, Facts& facts) {
  const Table table = interpret(std::move(raw), request.rules);
  Context context(table, request.defaults, facts);
  FileAudit audit{.file = table.file,
                  .format = table.format,
                  .rows = table.rows(),
                  .configurations = context.groups().size(),
                  .columns = {},
                  .networks = {},
                  .hardware = {},
                  .not_checked = {},
                  .findings = {}};
  for (const Column& column : table.columns) {
    audit.columns.push_back({column.name, column.role, column.unit, column.why});
  }
  note_what_is_known(context, audit);
  for (Finding& finding : run_checks(context)) {
    std::set<std::int64_t> lines;
    for (const std::size_t row : finding.rows) lines.insert(table.lines[row]);
    audit.findings.push_back({std::move(finding), {lines.begin(), lines.end()}});
  }
  return audit;
}

Audit audit_files(const Request& request, Facts& facts) {
  check_defaults(request.defaults, facts);
  Audit audit;
  for (const InputFile& file : files_of(request.files)) {
    try {
      audit.files.push_back(audit_table(read_table(file.path), request, facts));
    } catch (const Error& error) {
      if (file.named || error.kind() != ErrorKind::bad_input) throw;
      audit.skipped.emplace_back(error.what());
    }
  }
  if (audit.files.empty()) {
    bad_input("{}: no table of results; {}", request.files.front(), audit.skipped.front());
  }
  return audit;
}

void use_measured_ceilings(const Store& store, Facts& facts) {
  const std::vector<EnvironmentRecord> environments = store.environments();
  for (const EnvironmentRecord& environment : environments) {
    const std::vector<Ceiling> ceilings = store.ceilings(environment.key);
    std::set<std::string> devices;
    for (const Ceiling& ceiling : ceilings) devices.insert(ceiling.device);
    for (const std::string& device : devices) {
      const Roofs roofs = roofs_of(ceilings, device, 0);
      if (roofs.empty()) continue;
      HardwareFacts measured{
          .name = fmt::format("{} of {} (measured)", device,
                              environment.label.empty() ? environment.host : environment.label),
          .flops = {},
          .bytes_per_second = roofs.memory.back().bytes_per_second,
          .memory_bytes = {},
          .measured = true};
      for (const ComputeRoof& roof : roofs.compute) {
        const std::size_t blank = roof.unit.rfind(' ');
        const std::string precision =
            blank == std::string::npos ? roof.unit : roof.unit.substr(blank + 1);
        double& best = measured.flops[precision];
        best = std::max(best, roof.flops_per_second);
      }
      const bool cpu = device == "cpu";
      std::vector<std::string> names = {environment.key, environment.label, environment.host,
                                        cpu ? environment.cpu : environment.gpus};
      // The plain name of a device is clear where the store has one machine.
      if (environments.size() == 1) names.push_back(device);
      if (!cpu) std::erase(names, environment.host);
      facts.add_measured(names, measured);
    }
  }
}

}  // namespace ridgeline::audit
