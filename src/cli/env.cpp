// ridgeline env: what this machine and this build are.

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "lab/environment.h"

namespace ridgeline::cli {
namespace {

std::string hosting_text(const HostState& host) {
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<16}{}\n", name, value.empty() ? "n/a" : value);
  };
  line("cgroup limits",
       fmt::format("{} processors, {} of memory",
                   host.cpu_limit ? fmt::format("{:.2f}", *host.cpu_limit) : "all",
                   host.memory_limit_bytes ? bytes_text(*host.memory_limit_bytes) : "all"));
  line("machine", host.machine);
  line("virtualisation", host.virtualisation.empty() ? "none found" : host.virtualisation);
  line("container", host.container.empty() ? "none found" : host.container);
  line("governor", host.governor + (host.boost ? *host.boost ? ", boost on" : ", boost off" : ""));
  line("huge pages", host.huge_pages);
  line("clock source", host.clock_source);
  line("gpu driver", host.gpu_driver);
  return text;
}

std::string environment_text(const Environment& env) {
  std::string text;
  const auto line = [&](const std::string& name, const std::string& value) {
    text += fmt::format("{:<16}{}\n", name, value.empty() ? "n/a" : value);
  };
  const auto or_na = [](int number) {
    return number > 0 ? fmt::format("{}", number) : std::string("n/a");
  };
  line("host", env.host);
  line("cpu", env.cpu);
  line("processors",
       fmt::format("{} sockets, {} cores, {} processors, {} usable here", or_na(env.sockets),
                   or_na(env.cores), or_na(env.processors), or_na(env.usable_processors)));
  line("highest clock", env.max_mhz > 0.0 ? fmt::format("{:.0f} MHz", env.max_mhz) : "");
  line("vector units", joined(env.vector_extensions, " "));
  for (const CacheInfo& cache : env.caches) {
    line(fmt::format("L{} {}", cache.level, cache.type),
         fmt::format("{}, shared by {}", bytes_text(cache.bytes), cache.shared_by));
  }
  line("memory", fmt::format("{}, {} available", bytes_text(env.memory_bytes),
                             bytes_text(env.available_bytes)));
  text += hosting_text(env.hosting);
  for (std::size_t i = 0; i < env.gpus.size(); ++i) {
    const GpuInfo& gpu = env.gpus[i];
    line(fmt::format("cuda:{}", i),
         fmt::format("{}, compute capability {}, {} multiprocessors at up to {:.0f} MHz, {}, {} of "
                     "L2; driver for CUDA {}",
                     gpu.name, gpu.capability, gpu.multiprocessors, gpu.clock_mhz,
                     bytes_text(gpu.memory_bytes), bytes_text(gpu.l2_bytes), gpu.cuda_driver));
  }
  if (env.gpus.empty()) line("cuda", "none: " + env.no_gpu);
  line("system", env.os);
  line("kernel", env.kernel);
  line("ridgeline", fmt::format("{} ({}), {}", env.version, env.revision, env.build_type));
  line("compiler", fmt::format("{}, {}", env.compiler, env.flags));
  for (const auto& [name, version] : env.libraries) line(name, version);
  return text;
}

}  // namespace

void add_env(CLI::App& program, Action& action) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = program.add_subcommand("env", "Tell what this machine and this build are");
  command->add_flag("--json", *as_json, "Print one JSON document");
  command->footer("Example:\n  ridgeline env");
  command->callback([as_json, &action] {
    action = [as_json] {
      const Environment env = read_environment();
      print(*as_json ? environment_json(env) : environment_text(env));
      return 0;
    };
  });
}

}  // namespace ridgeline::cli
