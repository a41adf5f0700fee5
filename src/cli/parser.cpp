#include "cli/parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/options.h"

namespace ridgeline::cli {
namespace {

// The parser would take an unknown command for a stray argument.
void check_command(const CLI::App& program, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  const std::string name = argv[1];
  const auto commands = program.get_subcommands([](const CLI::App*) { return true; });
  std::vector<std::string_view> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  bad_input("unknown command '{}'{}", name, known_names(name, names));
}

// The number that an option takes, or no number.
template <typename T>
struct NumberOf {
  using type = T;
};
template <typename T>
struct NumberOf<std::optional<T>> {
  using type = T;
};

// CLI11 takes the nearest number that there is, without a word.
template <typename Number>
std::string out_of_range(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc::result_out_of_range ? text + " is out of range" : std::string();
}

// What was not understood, with the nearest option that is known.
[[noreturn]] void refuse_extras(const CLI::App& program) {
  const CLI::App* command = &program;
  std::string help = program.get_name();
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

}  // namespace

Option* Option::required() {
  option_->required();
  return this;
}
Option* Option::expected(int values) {
  option_->expected(values);
  return this;
}
Option* Option::delimiter(char between) {
  option_->delimiter(between);
  return this;
}
Option* Option::needs(const Option* other) {
  option_->needs(other->option_);
  return this;
}
Option* Option::excludes(const Option* other) {
  option_->excludes(other->option_);
  return this;
}
Option* Option::hidden() {
  option_->group("");
  return this;
}

Parser::Parser(const std::string& meaning, const std::string& name)
    : program_(std::make_unique<CLI::App>(meaning, name)), app_(program_.get()) {
  // An option given twice: the last one counts, so that scripts can be overridden.
  app_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  // One command a call: behind it, 'backends' is an argument, as in 'study backends'.
  app_->require_subcommand(0, 1);
}
Parser::Parser(CLI::App* command) : app_(command) {}
Parser::~Parser() = default;

Option* Parser::keep(CLI::Option* option) {
  return options_.emplace_back(std::make_unique<Option>(option)).get();
}

Parser* Parser::add_subcommand(const std::string& name, const std::string& meaning) {
  CLI::App* command = app_->add_subcommand(name, meaning);
  return commands_.emplace_back(std::unique_ptr<Parser>(new Parser(command))).get();
}

template <typename T>
Option* Parser::add_option(const std::string& names, T& value, const std::string& meaning) {
  const std::size_t space = names.find(' ');
  CLI::Option* option = app_->add_option(names.substr(0, space), value, meaning);
  if (space != std::string::npos) option->type_name(names.substr(space + 1));
  using Number = typename NumberOf<T>::type;
  if constexpr (std::is_arithmetic_v<Number>) option->check(out_of_range<Number>);
  if constexpr (std::same_as<T, std::vector<std::string>>) {
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (!value.empty()) option->capture_default_str();
  } else if constexpr (std::same_as<T, Number>) {
    option->capture_default_str();
  }
  return keep(option);
}
template Option* Parser::add_option(const std::string&, std::string&, const std::string&);
template Option* Parser::add_option(const std::string&, int&, const std::string&);
template Option* Parser::add_option(const std::string&, std::int64_t&, const std::string&);
template Option* Parser::add_option(const std::string&, double&, const std::string&);
template Option* Parser::add_option(const std::string&, std::optional<std::string>&,
                                    const std::string&);
template Option* Parser::add_option(const std::string&, std::optional<std::int64_t>&,
                                    const std::string&);
template Option* Parser::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option* Parser::add_option(const std::string&, std::vector<std::string>&,
                                    const std::string&);

Option* Parser::add_pair(const std::string& names, std::string& first, std::string& second,
                         const std::string& meaning) {
  using Pair = std::pair<std::string, std::string>;
  return keep(app_->add_option_function<Pair>(
      names,
      [&first, &second](const Pair& given) {
        first = given.first;
        second = given.second;
      },
      meaning));
}

Option* Parser::add_flag(const std::string& names, bool& value, const std::string& meaning) {
  return keep(app_->add_flag(names, value, meaning));
}

void Parser::version(const std::string& text) { app_->set_version_flag("--version", text); }
void Parser::footer(const std::string& text) { app_->footer(text); }
void Parser::callback(std::function<void()> function) { app_->callback(std::move(function)); }

bool Parser::subcommand_given() const { return !app_->get_subcommands().empty(); }
std::string Parser::help() const { return app_->help(program_ ? "" : "ridgeline"); }

void Parser::hide() { app_->group(""); }

std::string Parser::option_list() const {
  std::string lines;
  for (const CLI::App* command : app_->get_subcommands([](const CLI::App*) { return true; })) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        lines += fmt::format("{} --{} {}\n", command->get_name(), name,
                             option->get_expected_max() > 0 ? "value" : "flag");
      }
    }
  }
  return lines;
}

std::string Parser::parse(int argc, char** argv) {
  check_command(*app_, argc, argv);
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto used = app_->get_subcommands();
    return used.empty() ? app_->help() : used.back()->help(app_->get_name());
  } catch (const CLI::CallForVersion&) {
    return app_->version() + '\n';
  } catch (const CLI::ExtrasError&) {
    refuse_extras(*app_);
  } catch (const CLI::ConversionError& error) {
    // "Could not convert: --batch = abc"
    const std::string text = error.what();
    bad_input("{}: is no number that the option takes", text.substr(text.find(": ") + 2));
  } catch (const CLI::ParseError& error) {
    bad_input("{}", error.what());
  }
  return "";
}

}  // namespace ridgeline::cli
