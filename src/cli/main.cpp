// The program: finds the command, runs it, and turns what went wrong into a message and an exit
// code: 0 done, 1 a failed run, 2 bad use or bad input, 128 + n ended by signal n.

#include <CLI/CLI.hpp>
#include <new>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "build_info.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"

namespace ridgeline::cli {
namespace {

std::vector<std::string_view> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string_view> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

// The parser would take an unknown command for a stray argument.
void check_command(const CLI::App& program, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  const std::string name = argv[1];
  const auto names = names_of(program.get_subcommands([](const CLI::App*) { return true; }));
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  bad_input("unknown command '{}'{}", name, known_names(name, names));
}

// What the parser did not understand, with the nearest option it knows.
[[noreturn]] void refuse_extras(const CLI::App& program) {
  const CLI::App* command = &program;
  std::string help = "ridgeline";
  for (auto used = program.get_subcommands(); !used.empty(); used = command->get_subcommands()) {
    command = used.back();
    help += ' ' + command->get_name();
  }
  help += " --help";
  std::vector<std::string> known;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  const std::vector<std::string_view> candidates(known.begin(), known.end());
  const std::vector<std::string> extras = program.remaining(true);
  for (const std::string& extra : extras) {
    if (!extra.starts_with('-')) continue;
    const std::string name = extra.substr(0, extra.find('='));
    bad_input("unknown option '{}'{} See '{}'", name,
              nearest(name, candidates) ? did_you_mean(name, candidates) : ".", help);
  }
  bad_input("unexpected argument '{}'. See '{}'", extras.empty() ? "" : extras[0], help);
}

int run(int argc, char** argv) {
  CLI::App program("Trains convolutional networks, and tells where the time and the memory go.",
                   "ridgeline");
  program.set_version_flag(
      "--version", fmt::format("ridgeline {} ({})", build_info::version, build_info::revision));
  program.footer(
      "Examples:\n"
      "  ridgeline train mnist_cnn --epochs 3\n"
      "  ridgeline bench mnist_cnn --batch 512 --backend native,onednn\n"
      "  ridgeline describe resnet50 --per-layer\n"
      "  ridgeline verify mnist_cnn --backend native --against reference\n"
      "'ridgeline COMMAND --help' tells the options of a command.");
  // An option given twice: the last one counts, so that scripts can be overridden.
  program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  // One command a call: behind it, 'backends' is an argument, as in 'study backends'.
  program.require_subcommand(0, 1);
  Action action;
  add_train(program, action);
  add_eval(program, action);
  add_infer(program, action);
  add_export(program, action);
  add_bench(program, action);
  add_profile(program, action);
  add_compare(program, action);
  add_verify(program, action);
  add_describe(program, action);
  add_models(program, action);
  add_backends(program, action);
  add_data(program, action);
  add_env(program, action);
  add_roofline(program, action);
  add_store(program, action);
  add_study(program, action);
  add_report(program, action);
  check_command(program, argc, argv);
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto used = program.get_subcommands();
    print(used.empty() ? program.help() : used.back()->help("ridgeline"));
    return 0;
  } catch (const CLI::CallForVersion&) {
    print(program.version() + '\n');
    return 0;
  } catch (const CLI::ExtrasError&) {
    refuse_extras(program);
  } catch (const CLI::ConversionError& error) {
    // "Could not convert: --batch = abc"
    const std::string text = error.what();
    bad_input("{}: is no number that the option takes", text.substr(text.find(": ") + 2));
  } catch (const CLI::ParseError& error) {
    bad_input("{}", error.what());
  }
  if (!action) {
    print(program.help());
    return 0;
  }
  return action();
}

}  // namespace
}  // namespace ridgeline::cli

int main(int argc, char** argv) {
  try {
    return ridgeline::cli::run(argc, argv);
  } catch (const ridgeline::Error& error) {
    ridgeline::cli::message(fmt::format("ridgeline: {}\n", error.what()));
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    ridgeline::cli::message("ridgeline: out of memory; a smaller batch or --limit needs less\n");
    return 1;
  } catch (const std::exception& error) {
    ridgeline::cli::message(fmt::format("ridgeline: {}\n", error.what()));
    return 1;
  }
}
