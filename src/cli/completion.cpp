// Scripts that complete the command line in a shell.

#include <fmt/core.h>

#include <array>

#include "base/error.h"
#include "base/text.h"
#include "cli/help.h"
#include "lab/options.h"

namespace ridgeline::cli {
namespace {

// A command with the words behind "ridgeline" that lead to it.
struct Place {
  std::string path;  // "store list"
  const CommandInfo* command;
};

void add_places(std::vector<Place>& places, const CommandInfo& command, const std::string& path) {
  places.push_back({path, &command});
  for (const CommandInfo& each : command.commands) {
    if (!each.hidden)
      add_places(places, each, path.empty() ? each.last_word() : path + ' ' + each.last_word());
  }
}

// In single quotes, for any of the shells.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::vector<std::string> words_of(const CommandInfo& command) {
  std::vector<std::string> words;
  for (const CommandInfo& each : command.commands) {
    if (!each.hidden) words.push_back(each.last_word());
  }
  for (const OptionInfo& option : command.options) {
    if (option.hidden) continue;
    words.insert(words.end(), option.names.begin(), option.names.end());
    if (!option.position.empty()) {
      words.insert(words.end(), option.values.begin(), option.values.end());
    }
  }
  return words;
}

// case branches "place option) what", for options that take a value.
template <typename Branch>
std::string value_branches(const std::vector<Place>& places, Branch branch) {
  std::string text;
  for (const Place& place : places) {
    for (const OptionInfo& option : place.command->options) {
      if (option.value.empty() || option.hidden) continue;
      for (const std::string& name : option.names) {
        text +=
            fmt::format("    {}) {} ;;\n", shell_quoted(place.path + '|' + name), branch(option));
      }
    }
  }
  return text;
}

std::string place_branch(const std::vector<Place>& places) {
  std::vector<std::string> paths;
  for (const Place& place : places) {
    const std::size_t space = place.path.rfind(' ');
    const std::string parent = space == std::string::npos ? "" : place.path.substr(0, space);
    if (!place.path.empty()) {
      paths.push_back(shell_quoted(parent + '|' + place.command->last_word()));
    }
  }
  return joined(paths, "|");
}

std::string bash_script(const std::vector<Place>& places) {
  std::string words;
  for (const Place& place : places) {
    words += fmt::format("    {}) words={} ;;\n", shell_quoted(place.path),
                         shell_quoted(joined(words_of(*place.command), " ")));
  }
  const std::string values = value_branches(places, [](const OptionInfo& option) {
    return "words=" + shell_quoted(joined(option.values, " ")) + "; value=1";
  });
  return fmt::format(
      R"(# bash completion for ridgeline: source <(ridgeline completion bash)
_ridgeline() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local place= words= value= word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$place|$word" in
    {0}) place="${{place:+$place }}$word" ;;
    esac
  done
  case "$place|$before" in
{1}  esac
  [ -n "$value" ] || case "$place" in
{2}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _ridgeline ridgeline
)",
      place_branch(places), values, words);
}

// "name:meaning", as _describe reads it.
std::string described(const std::string& name, const std::string& meaning) {
  std::string text;
  for (const char c : name) text += c == ':' ? std::string("\\:") : std::string(1, c);
  return shell_quoted(meaning.empty() ? text : text + ':' + meaning);
}

std::string zsh_script(const std::vector<Place>& places) {
  std::string words;
  for (const Place& place : places) {
    std::vector<std::string> commands, options;
    for (const CommandInfo& each : place.command->commands) {
      if (!each.hidden) commands.push_back(described(each.last_word(), each.meaning));
    }
    for (const OptionInfo& option : place.command->options) {
      if (option.hidden) continue;
      for (const std::string& name : option.names)
        options.push_back(described(name, option.meaning));
      if (option.position.empty()) continue;
      for (const std::string& value : option.values) commands.push_back(described(value, ""));
    }
    words += fmt::format("    {}) names=({}); options=({}) ;;\n", shell_quoted(place.path),
                         joined(commands, " "), joined(options, " "));
  }
  const std::string values = value_branches(places, [](const OptionInfo& option) {
    std::vector<std::string> names;
    for (const std::string& value : option.values) names.push_back(shell_quoted(value));
    return names.empty() ? std::string("_files; return")
                         : fmt::format("compadd -- {}; return", joined(names, " "));
  });
  return fmt::format(
      R"(#compdef ridgeline
# zsh completion for ridgeline: save it as _ridgeline in a folder of $fpath
_ridgeline() {{
  local place= word
  local -a names options
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$place|$word" in
    {0}) place="${{place:+$place }}$word" ;;
    esac
  done
  case "$place|${{words[CURRENT-1]}}" in
{1}  esac
  case "$place" in
{2}  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option options
  elif (( $#names )); then
    _describe name names || _files
  else
    _files
  fi
}}
_ridgeline "$@"
)",
      place_branch(places), values, words);
}

std::string fish_script(const std::vector<Place>& places) {
  std::string text =
      "# fish completion for ridgeline: save it as ~/.config/fish/completions/ridgeline.fish\n";
  for (const Place& place : places) {
    std::vector<std::string> conditions, below;
    for (const CommandInfo& each : place.command->commands) below.push_back(each.last_word());
    if (place.path.empty()) {
      conditions.emplace_back("__fish_use_subcommand");
    } else {
      std::string path = place.path;
      for (std::size_t space = path.find(' '); space != std::string::npos; space = path.find(' ')) {
        conditions.push_back("__fish_seen_subcommand_from " + path.substr(0, space));
        path.erase(0, space + 1);
      }
      conditions.push_back("__fish_seen_subcommand_from " + path);
      if (!below.empty()) {
        conditions.push_back("not __fish_seen_subcommand_from " + joined(below, " "));
      }
    }
    const std::string begin =
        fmt::format("complete -c ridgeline -n {}", shell_quoted(joined(conditions, "; and ")));
    for (const CommandInfo& each : place.command->commands) {
      if (each.hidden) continue;
      text +=
          fmt::format("{} -f -a {} -d {}\n", begin, each.last_word(), shell_quoted(each.meaning));
    }
    for (const OptionInfo& option : place.command->options) {
      if (option.hidden) continue;
      for (const std::string& name : option.names) {
        const bool is_long = name.starts_with("--");
        text += fmt::format(
            "{} {} {}{}{} -d {}\n", begin, is_long ? "-l" : "-s", name.substr(is_long ? 2 : 1),
            option.value.empty() ? "" : " -r",
            option.values.empty() ? "" : " -f -a " + shell_quoted(joined(option.values, " ")),
            shell_quoted(option.meaning));
      }
      if (!option.position.empty() && !option.values.empty()) {
        text += fmt::format("{} -a {}\n", begin, shell_quoted(joined(option.values, " ")));
      }
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const CommandInfo& program, const std::string& shell) {
  static constexpr std::array<std::string_view, 3> kShells = {"bash", "zsh", "fish"};
  std::vector<Place> places;
  add_places(places, program, "");
  if (shell == "bash") return bash_script(places);
  if (shell == "zsh") return zsh_script(places);
  if (shell == "fish") return fish_script(places);
  bad_input("unknown shell '{}'{}", shell, known_names(shell, kShells));
}

}  // namespace ridgeline::cli
