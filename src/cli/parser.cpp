#include "cli/parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cli/help.h"
#include "lab/options.h"

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

// "MODEL,--model NAME": names, the place and the word for the value.
OptionInfo info_of(const std::string& names, const std::string& meaning) {
  OptionInfo info;
  info.meaning = meaning;
  const std::size_t space = names.find(' ');
  if (space != std::string::npos) info.value = names.substr(space + 1);
  for (const std::string_view name : pieces_of(std::string_view(names).substr(0, space), ",")) {
    if (name.starts_with('-') || name.starts_with('!')) {
      info.names.emplace_back(name.substr(name.starts_with('!') ? 1 : 0));
    } else {
      info.position = name;
    }
  }
  return info;
}

void add_default(std::string& meaning, const std::string& value) {
  if (!value.empty() && !meaning.ends_with("]")) meaning += fmt::format(" [default: {}]", value);
}

}  // namespace

Option* Option::required() {
  option_->required();
  info_.required = true;
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
Option* Option::values(std::vector<std::string> names) {
  info_.values = std::move(names);
  return this;
}
Option* Option::check(std::function<std::string(const std::string&)> trouble) {
  option_->check(std::move(trouble));
  return this;
}
Option* Option::hidden() {
  info_.hidden = true;
  return this;
}

Parser::Parser(const std::string& meaning, const std::string& name)
    : program_(std::make_unique<CLI::App>(meaning, name)), app_(program_.get()) {
  info_.name = name;
  info_.meaning = meaning;
  // An option given twice: the last one counts, so that scripts can be overridden.
  app_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  // One command a call: behind it, 'backends' is an argument, as in 'study backends'.
  app_->require_subcommand(0, 1);
}
Parser::Parser(CLI::App* command, CommandInfo info) : app_(command), info_(std::move(info)) {}
Parser::~Parser() = default;

void Parser::heading(const std::string& text) { heading_ = text; }

Option* Parser::keep(CLI::Option* option, OptionInfo info) {
  info.heading = heading_;
  return options_.emplace_back(std::make_unique<Option>(option, std::move(info))).get();
}

Parser* Parser::add_subcommand(const std::string& name, const std::string& meaning) {
  CLI::App* command = app_->add_subcommand(name, meaning);
  CommandInfo info;
  info.name = info_.name + ' ' + name;
  info.meaning = meaning;
  info.heading = heading_;
  return commands_.emplace_back(std::unique_ptr<Parser>(new Parser(command, std::move(info))))
      .get();
}

template <typename T>
Option* Parser::add_option(const std::string& names, T& value, const std::string& meaning) {
  using Number = typename NumberOf<T>::type;
  constexpr bool is_list = std::same_as<T, std::vector<std::string>>;
  OptionInfo info = info_of(names, meaning);
  if (info.value.empty()) info.value = std::is_arithmetic_v<Number> ? "NUMBER" : "TEXT";
  info.repeated = is_list;
  CLI::Option* option = app_->add_option(names.substr(0, names.find(' ')), value, meaning);
  option->type_name(info.value);
  if constexpr (std::is_arithmetic_v<Number>) option->check(out_of_range<Number>);
  if constexpr (is_list) {
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    add_default(info.meaning, joined(value, ","));
  } else if constexpr (std::same_as<T, Number>) {
    add_default(info.meaning, fmt::format("{}", value));
  }
  return keep(option, std::move(info));
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
  OptionInfo info = info_of(names, meaning);
  if (info.value.empty()) info.value = "TEXT TEXT";
  return keep(app_->add_option_function<Pair>(
                  names,
                  [&first, &second](const Pair& given) {
                    first = given.first;
                    second = given.second;
                  },
                  meaning),
              std::move(info));
}

Option* Parser::add_flag(const std::string& names, bool& value, const std::string& meaning) {
  return keep(app_->add_flag(names, value, meaning), info_of(names, meaning));
}

void Parser::version(const std::string& text) {
  CLI::Option* option = app_->set_version_flag("--version", text);
  (void)keep(option, info_of("--version", "Show the version"));
}
void Parser::notes(const std::string& text) { info_.notes = text; }
void Parser::examples(std::vector<std::string> commands) { info_.examples = std::move(commands); }
void Parser::callback(std::function<void()> function) { app_->callback(std::move(function)); }
void Parser::hide() { info_.hidden = true; }

bool Parser::subcommand_given() const { return !app_->get_subcommands().empty(); }

const Parser& Parser::used() const {
  for (const auto& command : commands_) {
    if (command->app_->parsed()) return command->used();
  }
  return *this;
}

CommandInfo Parser::info() const {
  CommandInfo info = info_;
  for (const auto& option : options_) info.options.push_back(option->info());
  // The parser's own, everywhere, in the last group.
  info.options.push_back(info_of("-h,--help", "Show this help"));
  info.options.back().heading = info.options.size() > 1 ? options_.back()->info().heading : "";
  for (const auto& command : commands_) info.commands.push_back(command->info());
  return info;
}

std::string Parser::help() const { return help_text(info(), help_width()); }

std::string Parser::parse(int argc, char** argv) {
  check_command(*app_, argc, argv);
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return used().help();
  } catch (const CLI::CallForVersion&) {
    return app_->version() + '\n';
  } catch (const CLI::ExtrasError&) {
    refuse_extras(*app_);
  } catch (const CLI::ConversionError& error) {
    // "Could not convert: --batch = abc"
    const std::string text = error.what();
    bad_input("{}: expected a number", text.substr(text.find(": ") + 2));
  } catch (const CLI::ArgumentMismatch& error) {
    // "--batch: 1 required NUMBER missing"
    const std::string text = error.what();
    const std::size_t colon = text.find(": 1 required ");
    if (colon == std::string::npos || !text.ends_with(" missing")) bad_input("{}", text);
    bad_input("{} needs a value: {}", text.substr(0, colon),
              text.substr(colon + 13, text.size() - colon - 21));
  } catch (const CLI::ExcludesError& error) {
    // "--margin excludes --ops"
    std::string text = error.what();
    const std::size_t verb = text.find(" excludes ");
    if (verb != std::string::npos) text.replace(verb, 10, " cannot be combined with ");
    bad_input("{}", text);
  } catch (const CLI::ParseError& error) {
    bad_input("{}", error.what());
  }
  return "";
}

}  // namespace ridgeline::cli
