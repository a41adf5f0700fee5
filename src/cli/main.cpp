// The program: finds the command, runs it, and turns what went wrong into a message and an exit
// code: 0 done, 1 a failed run, 2 bad use or bad input, 128 + n ended by signal n.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/memory_reserve.h"
#include "base/reason.h"
#include "build_info.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "lab/outcome.h"

namespace ridgeline::cli {
namespace {

int run(int argc, char** argv) {
  Parser program("Trains convolutional networks, and tells where the time and the memory go.",
                 "ridgeline");
  program.version(fmt::format("ridgeline {} ({})", build_info::version, build_info::revision));
  program.footer(
      "Examples:\n"
      "  ridgeline train mnist_cnn --epochs 3\n"
      "  ridgeline bench mnist_cnn --batch 512 --backend native,onednn\n"
      "  ridgeline describe resnet50 --per-layer\n"
      "  ridgeline verify mnist_cnn --backend native --against reference\n"
      "'ridgeline COMMAND --help' tells the options of a command.");
  Action action;
  for (const auto add : {add_train, add_eval, add_infer, add_export, add_bench, add_profile,
                         add_compare, add_verify, add_describe, add_models, add_backends, add_data,
                         add_env, add_roofline, add_store, add_study, add_report}) {
    add(program, action);
  }
  // Not for people: completion of shells and the tests of options read it.
  Parser* list = program.add_subcommand("options", "Every option of every command, a line each");
  list->hide();
  list->callback([&] {
    action = [&program] {
      print(program.option_list());
      return 0;
    };
  });
  if (const std::string text = program.parse(argc, argv); !text.empty()) {
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
  tell(reason);
  const bool too_large = kind == ErrorKind::lacks_memory;
  try {
    tell_outcome(too_large ? ItemStatus::left_out : ItemStatus::failed, reason);
  } catch (const std::exception&) {
    // Without memory the study learns from the exit code alone.
  }
  return kind == ErrorKind::failure ? 1 : 2;
}

int run_and_tell(int argc, char** argv) {
  keep_memory_reserve();
  usual_ending = std::set_terminate(&end_at_once);
  try {
    open_outcome();
    const int code = run(argc, argv);
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
