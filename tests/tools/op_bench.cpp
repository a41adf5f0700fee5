// A table of the op cases on every backend: supported or why not, time, rates and error.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "backends/registry.h"
#include "base/error.h"
#include "base/parallel.h"
#include "support/op_runner.h"

namespace ridgeline::testing {
namespace {

struct Options {
  std::string filter, backend, device = "cpu";
  Precision precision = Precision::fp32;
  int threads = 0;
  int repetitions = 20;
  bool explain = false;
};

std::string with_unit(double rate) { return rate > 0 ? fmt::format("{:.2f}", rate) : "n/a"; }

void print_row(const OpCase& op_case, const Backend& backend, const Options& options) {
  const CheckResult check = check_case(backend, op_case, Effort::quick);
  if (!check.refusal.empty()) {
    if (options.explain) {
      fmt::print("{:<62} {:<10} unsupported: {}\n", op_case.name, backend.name, check.refusal);
    }
    return;
  }
  const Speed speed = time_case(backend, op_case, options.repetitions);
  const double bytes = static_cast<double>(speed.cost.bytes_read + speed.cost.bytes_written);
  fmt::print("{:<62} {:<10} {:>10.2f} {:>9} {:>8} {:>9.1e} {:>6.2f}  {}{}\n", op_case.name,
             backend.name, speed.seconds * 1e6,
             with_unit(static_cast<double>(speed.cost.flops) / speed.seconds * 1e-9),
             with_unit(bytes / speed.seconds * 1e-9), check.error, check.tolerance, check.rows,
             check.failures.empty() ? "" : "  WRONG: " + check.failures[0]);
}

void print_problem(const OpCase& op_case) {
  std::vector<NodeId> nodes;
  for (std::size_t id = 0; id < op_case.graph.nodes().size(); ++id) {
    nodes.push_back(static_cast<NodeId>(id));
  }
  fmt::print("  {}\n", make_problem(op_case.graph, nodes).text());
}

int run(const Options& options) {
  set_thread_count(options.threads);
  fmt::print("{} threads, best of {}; tolerance 1 is the largest error allowed\n", thread_count(),
             options.repetitions);
  fmt::print("{:<62} {:<10} {:>10} {:>9} {:>8} {:>9} {:>6}  {}\n", "case", "backend", "us",
             "GFLOP/s", "GB/s", "error", "tol", "rows");
  for (const OpCase& op_case : op_cases()) {
    if (op_case.name.find(options.filter) == std::string::npos) continue;
    if (options.explain) print_problem(op_case);
    for (const Backend* backend : all_backends()) {
      const bool wanted = options.backend.empty() || backend->name == options.backend;
      if (!wanted || backend->device != options.device || !backend->unavailable().empty()) continue;
      if (options.precision == Precision::fp32) {
        print_row(op_case, *backend, options);
      } else if (const auto narrow = in_precision(op_case, options.precision)) {
        print_row(*narrow, *backend, options);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace ridgeline::testing

int main(int argc, char** argv) {
  using namespace ridgeline::testing;
  CLI::App app(
      "Support, speed and error of every op case.\nExample: op_bench --case conv2d. "
      "--backend native --explain");
  Options options;
  app.add_option("--case", options.filter, "cases whose name contains this");
  app.add_option("--backend", options.backend, "one backend; all when not given");
  app.add_option("--device", options.device, "cpu or cuda");
  std::string precision = "fp32";
  app.add_option("--precision", precision, "fp32, tf32, bf16 or fp16")
      ->check(CLI::IsMember({"fp32", "tf32", "bf16", "fp16"}));
  app.add_option("--threads", options.threads, "0: one per core");
  app.add_option("--repetitions", options.repetitions, "timed runs of each kernel")
      ->check(CLI::PositiveNumber);
  app.add_flag("--explain", options.explain, "print problems and the reasons of refusals");
  CLI11_PARSE(app, argc, argv);
  options.precision = static_cast<ridgeline::Precision>(
      std::find(ridgeline::kPrecisionNames.begin(), ridgeline::kPrecisionNames.end(), precision) -
      ridgeline::kPrecisionNames.begin());
  try {
    return run(options);
  } catch (const ridgeline::Error& error) {
    std::cerr << "op_bench: " << error.what() << "\n";
    return error.exit_code();
  }
}
