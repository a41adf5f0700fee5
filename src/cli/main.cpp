// The program: finds the command, runs it, and turns what went wrong into a message and an exit
// code: 0 done, 1 a failed run, 2 bad use or bad input, 128 + n ended by signal n.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/memory_reserve.h"
#include "base/reason.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "lab/outcome.h"
#include "ranks/ranks.h"

namespace ridgeline::cli {
namespace {

int run(int argc, char** argv) {
  Parser program("Train convolutional networks and measure where time, memory and energy go",
                 "ridgeline");
  program.version(version_text());
  program.notes("'ridgeline help COMMAND' shows the options of a command.");
  program.examples({"ridgeline train mnist_cnn --epochs 3",
                    "ridgeline bench mnist_cnn --batch 512 --backend native,onednn",
                    "ridgeline describe resnet50 --per-layer",
                    "ridgeline verify mnist_cnn --backend native --against reference"});
  Action action;
  using Add = void (*)(Parser&, Action&);
  const std::pair<const char*, std::vector<Add>> groups[] = {
      {"Train and use networks", {add_train, add_eval, add_infer, add_export}},
      {"Measure", {add_bench, add_profile, add_study}},
      {"Look at results",
       {add_compare, add_roofline, add_store, add_report, add_audit, add_predict}},
      {"Look at networks and backends", {add_models, add_describe, add_backends, add_verify}},
      {"Data and machine", {add_data, add_env}},
      {"Help", {add_help}}};
  for (const auto& [heading, commands] : groups) {
    program.heading(heading);
    for (const Add add : commands) add(program, action);
  }
  std::string text;
  try {
    text = program.parse(argc, argv);
  } catch (const Error&) {
    // What all ranks are told wrongly, the first tells.
    if (launched_ranks() > 1 && launched_rank() > 0) return 2;
    throw;
  }
  if (!text.empty()) {
    print(text);
    return 0;
  }
  if (!action) {
    print(program.help());
    return 0;
  }
  return action();
}

// Allocates nothing: memory may be what is missing.
void tell(const char* reason) noexcept {
  for (const char* text : {"ridgeline: ", reason, "\n"}) (void)std::fputs(text, stderr);
  (void)std::fflush(stderr);
}
void tell(const char* reason, int rank) noexcept {
  (void)std::fprintf(stderr, "ridgeline: rank %d: %s\n", rank, reason);
  (void)std::fflush(stderr);
}

std::terminate_handler usual_ending = nullptr;

// Memory ran out for good within a function that may not throw: only an end is left. Anything else
// is a defect, of which the usual ending tells more.
[[noreturn]] void end_at_once() {
  if (memory_ran_out()) {
    tell("out of memory where no error can be passed on; ended at once");
    _exit(1);
  }
  usual_ending();
  std::abort();
}

// For the user, and for a study that started this process.
int give_up(const char* reason, ErrorKind kind) {
  const int code = kind == ErrorKind::failure ? 1 : 2;
  Ranks* const ranks = joined_ranks();
  if (ranks != nullptr && !ranks->ends_together()) {
    // The others wait for this one.
    tell(reason, ranks->rank());
    ranks->abort(code);
  }
  if (ranks == nullptr || ranks->first()) tell(reason);
  if (ranks != nullptr) ranks->finish();
  const bool too_large = kind == ErrorKind::lacks_memory;
  try {
    tell_outcome(too_large ? ItemStatus::left_out : ItemStatus::failed, reason);
  } catch (const std::exception&) {
    // Without memory the study learns from the exit code alone.
  }
  return code;
}

int run_and_tell(int argc, char** argv) {
  keep_memory_reserve();
  usual_ending = std::set_terminate(&end_at_once);
  try {
    open_outcome();
    const int code = run(argc, argv);
    if (Ranks* ranks = joined_ranks()) ranks->finish();
    tell_outcome(code == 0 ? ItemStatus::done : ItemStatus::failed);
    return code;
  } catch (const Error& error) {
    return give_up(error.what(), error.kind());
  } catch (const std::exception& error) {
    return give_up(reason_of(error), ErrorKind::failure);
  }
}

}  // namespace
}  // namespace ridgeline::cli

int main(int argc, char** argv) { return ridgeline::cli::run_and_tell(argc, argv); }
