// ridgeline help, version and completion: made from the parser itself.

#include "base/error.h"
#include "build_info.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/output.h"
#include "lab/options.h"

namespace ridgeline::cli {
namespace {

CommandInfo command_named(const Parser& program, const std::vector<std::string>& words) {
  CommandInfo command = program.info();
  for (const std::string& word : words) {
    std::vector<std::string> known;
    const CommandInfo* found = nullptr;
    for (const CommandInfo& each : command.commands) {
      known.push_back(each.last_word());
      if (known.back() == word) found = &each;
    }
    const std::vector<std::string_view> names(known.begin(), known.end());
    if (found == nullptr) bad_input("unknown command '{}'{}", word, known_names(word, names));
    command = CommandInfo(*found);
  }
  return command;
}

// Every option of every command, a line each: "train --batch value", "train --json flag".
std::string option_list(const CommandInfo& program) {
  std::string lines;
  for (const CommandInfo& command : program.commands) {
    for (const OptionInfo& option : command.options) {
      for (const std::string& name : option.names) {
        if (!name.starts_with("--")) continue;
        lines += fmt::format("{} {} {}\n", command.last_word(), name,
                             option.value.empty() ? "flag" : "value");
      }
    }
  }
  return lines;
}

}  // namespace

std::string version_text() {
  return fmt::format("ridgeline {} ({})", build_info::version, build_info::revision);
}

void add_help(Parser& program, Action& action) {
  struct HelpOptions {
    std::vector<std::string> command;
    bool man = false;
  };
  auto options = std::make_shared<HelpOptions>();
  Parser* help = program.add_subcommand("help", "Show the help of a command");
  help->add_option("COMMAND", options->command, "A command, such as 'train' or 'store list'");
  help->add_flag("--man", options->man, "Print a man page of the whole program");
  help->examples(
      {"ridgeline help train", "ridgeline help store list", "ridgeline help --man > ridgeline.1"});
  help->callback([options, &program, &action] {
    action = [options, &program] {
      print(options->man ? man_page(program.info(), version_text())
                         : help_text(command_named(program, options->command), help_width()));
      return 0;
    };
  });

  Parser* version = program.add_subcommand("version", "Show the version");
  version->examples({"ridgeline version"});
  version->callback([&action] {
    action = [] {
      print(version_text() + '\n');
      return 0;
    };
  });

  auto shell = std::make_shared<std::string>();
  Parser* completion =
      program.add_subcommand("completion", "Print a script for command completion in a shell");
  completion->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->values({"bash", "zsh", "fish"});
  completion->examples({"source <(ridgeline completion bash)",
                        "ridgeline completion fish > ~/.config/fish/completions/ridgeline.fish"});
  completion->callback([shell, &program, &action] {
    action = [shell, &program] {
      print(completion_script(program.info(), *shell));
      return 0;
    };
  });

  // For tests, which check that no option was forgotten.
  Parser* list = program.add_subcommand("options", "Print every option of every command");
  list->hide();
  list->callback([&program, &action] {
    action = [&program] {
      print(option_list(program.info()));
      return 0;
    };
  });
}

}  // namespace ridgeline::cli
