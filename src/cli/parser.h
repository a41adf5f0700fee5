#pragma once

// The command line: commands and their options. CLI11 stands behind it in parser.cpp alone, because
// every file that includes CLI11 compiles most of it again.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ridgeline::cli {

// An option or an argument, as the help, the man page and shell completion show it.
struct OptionInfo {
  std::vector<std::string> names;   // "--batch"; empty: an argument without a name
  std::string position;             // "MODEL", of an argument
  std::string value;                // "FILE"; empty: a flag
  std::string meaning;              // with its default: "Samples per step [default: 64]"
  std::string heading;              // that it stands under
  std::vector<std::string> values;  // that a shell suggests
  bool required = false, repeated = false, hidden = false;
};

// A command, as the help, the man page and shell completion show it.
struct CommandInfo {
  std::string name;     // "ridgeline store list"
  std::string meaning;  // one line
  std::string heading;  // that it stands under in the list of commands
  std::vector<OptionInfo> options;
  std::vector<CommandInfo> commands;
  std::string notes;
  std::vector<std::string> examples;
  bool hidden = false;

  // "list" of "ridgeline store list".
  [[nodiscard]] std::string last_word() const { return name.substr(name.rfind(' ') + 1); }
};

class Option {
 public:
  Option(CLI::Option* option, OptionInfo info) : option_(option), info_(std::move(info)) {}

  Option* required();
  Option* expected(int values);
  Option* delimiter(char between);  // "a,b" are two values
  Option* needs(const Option* other);
  Option* excludes(const Option* other);
  Option* values(std::vector<std::string> names);  // that a shell suggests
  // Of each value: why it is refused, or nothing.
  Option* check(std::function<std::string(const std::string&)> trouble);
  Option* hidden();  // not in the help

  [[nodiscard]] const OptionInfo& info() const { return info_; }

 private:
  CLI::Option* option_;
  OptionInfo info_;
};

// The program, or one of its commands. Owns its commands and options; pointers to them last as long
// as it does.
class Parser {
 public:
  Parser(const std::string& meaning, const std::string& name);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // Options and commands that are added from here on stand under it in the help.
  void heading(const std::string& text);
  Parser* add_subcommand(const std::string& name, const std::string& meaning);
  // For strings, numbers, optional ones and lists: parser.cpp lists the types. Names that begin
  // with no '-' stand for their position; behind a space comes the word for the value, "--out
  // FILE" (NUMBER or TEXT where there is none). The value it has now is the default of the help,
  // where `meaning` does not end with one in brackets. Given twice, the last one counts; of lists,
  // both do.
  template <typename T>
  Option* add_option(const std::string& names, T& value, const std::string& meaning = {});
  // Two values of one option.
  Option* add_pair(const std::string& names, std::string& first, std::string& second,
                   const std::string& meaning);
  // "--no-x": the flag makes `value` false where a '!' stands before the name.
  Option* add_flag(const std::string& names, bool& value, const std::string& meaning);
  void version(const std::string& text);             // --version prints it
  void notes(const std::string& text);               // below the options in the help
  void examples(std::vector<std::string> commands);  // at the end of the help
  void callback(std::function<void()> function);     // when the command was given
  void hide();                                       // not in the help

  [[nodiscard]] bool subcommand_given() const;
  [[nodiscard]] CommandInfo info() const;
  [[nodiscard]] std::string help() const;

  // Reads the command line and calls the callbacks. Gives a text to print instead, where help or
  // the version was asked for. What is not understood is bad_input, with the nearest name that is
  // known.
  [[nodiscard]] std::string parse(int argc, char** argv);

 private:
  Parser(CLI::App* command, CommandInfo info);
  Option* keep(CLI::Option* option, OptionInfo info);
  [[nodiscard]] const Parser& used() const;  // the innermost command that was given

  std::unique_ptr<CLI::App> program_;  // of the outermost one alone
  CLI::App* app_;
  CommandInfo info_;  // without options and commands
  std::string heading_;
  std::vector<std::unique_ptr<Parser>> commands_;
  std::vector<std::unique_ptr<Option>> options_;
};

}  // namespace ridgeline::cli
