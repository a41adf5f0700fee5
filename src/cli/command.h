#pragma once

// The subcommands: each adds itself to the program's parser, and when it was asked for leaves what
// is to be done in `action`, which gives the exit code.

#include <functional>

namespace CLI {
class App;
}

namespace ridgeline::cli {

using Action = std::function<int()>;

void add_train(CLI::App& program, Action& action);
void add_eval(CLI::App& program, Action& action);
void add_infer(CLI::App& program, Action& action);
void add_export(CLI::App& program, Action& action);
void add_bench(CLI::App& program, Action& action);
void add_profile(CLI::App& program, Action& action);
void add_compare(CLI::App& program, Action& action);
void add_verify(CLI::App& program, Action& action);
void add_describe(CLI::App& program, Action& action);
void add_models(CLI::App& program, Action& action);
void add_backends(CLI::App& program, Action& action);
void add_data(CLI::App& program, Action& action);
void add_env(CLI::App& program, Action& action);
void add_roofline(CLI::App& program, Action& action);
void add_store(CLI::App& program, Action& action);
void add_study(CLI::App& program, Action& action);
void add_report(CLI::App& program, Action& action);

}  // namespace ridgeline::cli
