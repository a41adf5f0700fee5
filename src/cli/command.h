#pragma once

// The subcommands: each adds itself to the program's parser, and when it was asked for leaves what
// is to be done in `action`, which gives the exit code.

#include <functional>
#include <string>

namespace ridgeline::cli {

class Parser;

using Action = std::function<int()>;

// A command that only has subcommands prints its help.
void help_without_subcommand(Parser& command, Action& action);

void add_train(Parser& program, Action& action);
void add_eval(Parser& program, Action& action);
void add_infer(Parser& program, Action& action);
void add_export(Parser& program, Action& action);
void add_bench(Parser& program, Action& action);
void add_profile(Parser& program, Action& action);
void add_compare(Parser& program, Action& action);
void add_verify(Parser& program, Action& action);
void add_describe(Parser& program, Action& action);
void add_models(Parser& program, Action& action);
void add_backends(Parser& program, Action& action);
void add_data(Parser& program, Action& action);
void add_env(Parser& program, Action& action);
void add_roofline(Parser& program, Action& action);
void add_store(Parser& program, Action& action);
void add_study(Parser& program, Action& action);
void add_report(Parser& program, Action& action);
void add_audit(Parser& program, Action& action);
void add_predict(Parser& program, Action& action);
// help, version, completion.
void add_help(Parser& program, Action& action);

// "ridgeline 0.1.0 (a04368e)"
[[nodiscard]] std::string version_text();

}  // namespace ridgeline::cli
