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

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option* required();
  Option* expected(int values);
  Option* delimiter(char between);  // "a,b" are two values
  Option* needs(const Option* other);
  Option* excludes(const Option* other);
  Option* hidden();  // not in the help

 private:
  CLI::Option* option_;
};

// The program, or one of its commands. Owns its commands and options; pointers to them last as long
// as it does.
class Parser {
 public:
  Parser(const std::string& meaning, const std::string& name);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  Parser* add_subcommand(const std::string& name, const std::string& meaning);
  // For strings, numbers, optional ones and lists: parser.cpp lists the types. Names that begin
  // with no '-' stand for their position; behind a space comes the word for the value, "--out
  // FILE". The value it has now is the default of the help. Given twice, the last one counts; of
  // lists, both do.
  template <typename T>
  Option* add_option(const std::string& names, T& value, const std::string& meaning = {});
  // Two values of one option.
  Option* add_pair(const std::string& names, std::string& first, std::string& second,
                   const std::string& meaning);
  Option* add_flag(const std::string& names, bool& value, const std::string& meaning);
  void version(const std::string& text);          // --version prints it
  void footer(const std::string& text);           // below the help
  void callback(std::function<void()> function);  // when the command was given

  [[nodiscard]] bool subcommand_given() const;
  [[nodiscard]] std::string help() const;
  void hide();  // not in the help
  // Every option of every command, a line each: "train --batch value", "train --json flag".
  [[nodiscard]] std::string option_list() const;

  // Reads the command line and calls the callbacks. Gives a text to print instead, where help or
  // the version was asked for. What is not understood is bad_input, with the nearest name that is
  // known.
  [[nodiscard]] std::string parse(int argc, char** argv);

 private:
  explicit Parser(CLI::App* command);
  Option* keep(CLI::Option* option);

  std::unique_ptr<CLI::App> program_;  // of the outermost one alone
  CLI::App* app_;
  std::vector<std::unique_ptr<Parser>> commands_;
  std::vector<std::unique_ptr<Option>> options_;
};

}  // namespace ridgeline::cli
