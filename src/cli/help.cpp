#include "cli/help.h"

#include <algorithm>

#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/wrap.h"
#include "cli/output.h"

namespace ridgeline::cli {
namespace {

constexpr std::size_t kWidest = 100, kNarrowest = 40;
constexpr std::size_t kColumn = 30;  // where descriptions begin

// "--model MODEL", "-h, --help", "MODEL, --model".
std::string left_side(const OptionInfo& option) {
  std::vector<std::string> words;
  if (!option.position.empty()) words.push_back(option.position);
  words.insert(words.end(), option.names.begin(), option.names.end());
  std::string text = joined(words, ", ");
  if (option.position.empty() && !option.value.empty()) text += ' ' + option.value;
  if (!option.position.empty() && option.repeated) text += " ...";
  return text;
}

std::string entry(const std::string& left, const std::string& meaning, std::size_t width) {
  std::string line = "  " + left;
  const std::size_t column = std::min(kColumn, width / 2);
  const std::size_t taken = display_width(line);
  line += taken + 2 <= column ? std::string(column - taken, ' ') : '\n' + std::string(column, ' ');
  return line + wrapped(meaning, column, column, width) + '\n';
}

std::string paragraphs(const std::string& text, std::size_t width) {
  std::string result;
  for (const std::string_view line : pieces_of(text, "\n"))
    result += wrapped(line, 0, 0, width) + '\n';
  return result;
}

// The headings of what is shown, in their order.
template <typename Item>
std::vector<std::string> headings_of(const std::vector<Item>& items) {
  std::vector<std::string> headings;
  for (const Item& item : items) {
    if (item.hidden ||
        std::find(headings.begin(), headings.end(), item.heading) != headings.end()) {
      continue;
    }
    headings.push_back(item.heading);
  }
  return headings;
}

std::string usage_of(const CommandInfo& command) {
  std::string text = command.name;
  const bool commands = std::any_of(command.commands.begin(), command.commands.end(),
                                    [](const CommandInfo& each) { return !each.hidden; });
  std::string arguments;
  for (const OptionInfo& option : command.options) {
    if (option.position.empty() || option.hidden) continue;
    const std::string word = option.position + (option.repeated ? "..." : "");
    arguments += ' ' + (option.required ? word : '[' + word + ']');
  }
  if (commands && arguments.empty()) return text + " COMMAND [OPTIONS]";
  text += arguments + " [OPTIONS]";
  if (commands) text += fmt::format("\n       {} COMMAND [OPTIONS]", command.name);
  return text;
}

std::string title_of(const std::string& heading, const char* otherwise) {
  return (heading.empty() ? otherwise : heading) + std::string(":\n");
}

// ---- The man page ----

// Text as it is: no word of it is taken for a request of roff.
std::string roff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) {
      result += std::string("\\&") + c;
    } else {
      result += c;
    }
  }
  return result;
}

void add_man_entry(std::string& page, const std::string& left, const std::string& meaning) {
  page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(left), roff(meaning));
}

void add_man_command(std::string& page, const CommandInfo& command) {
  page += fmt::format(".SS {}\n{}.\n", roff(command.name), roff(command.meaning));
  const std::string usage = usage_of(command);
  for (const std::string_view line : pieces_of(usage, "\n")) {
    page += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(line));
  }
  for (const std::string& heading : headings_of(command.options)) {
    page += fmt::format(".PP\n{}:\n", roff(heading.empty() ? "Options" : heading));
    for (const OptionInfo& option : command.options) {
      if (!option.hidden && option.heading == heading) {
        add_man_entry(page, left_side(option), option.meaning);
      }
    }
  }
  if (!command.notes.empty()) page += fmt::format(".PP\n{}\n", roff(command.notes));
  if (!command.examples.empty()) {
    page += ".PP\nExamples:\n.PP\n.nf\n";
    for (const std::string& example : command.examples) page += roff(example) + '\n';
    page += ".fi\n";
  }
  for (const CommandInfo& each : command.commands) {
    if (!each.hidden) add_man_command(page, each);
  }
}

}  // namespace

std::size_t help_width() {
  return std::clamp(output_width().value_or(kWidest), kNarrowest, kWidest);
}

std::string help_text(const CommandInfo& command, std::size_t width) {
  std::string text =
      fmt::format("{}.\n\nUsage: {}\n", wrapped(command.meaning, 0, 0, width), usage_of(command));
  for (const std::string& heading : headings_of(command.commands)) {
    text += '\n' + title_of(heading, "Commands");
    for (const CommandInfo& each : command.commands) {
      if (!each.hidden && each.heading == heading) {
        text += entry(each.last_word(), each.meaning, width);
      }
    }
  }
  for (const std::string& heading : headings_of(command.options)) {
    text += '\n' + title_of(heading, "Options");
    for (const OptionInfo& option : command.options) {
      if (!option.hidden && option.heading == heading) {
        text += entry(left_side(option), option.meaning, width);
      }
    }
  }
  if (!command.notes.empty()) text += '\n' + paragraphs(command.notes, width);
  if (command.examples.empty()) return text;
  text += command.examples.size() == 1 ? "\nExample:\n" : "\nExamples:\n";
  for (const std::string& example : command.examples) {
    text += "  " + wrapped(example, 2, 6, width) + '\n';
  }
  return text;
}

std::string man_page(const CommandInfo& program, std::string_view version) {
  std::string page = fmt::format(
      ".TH RIDGELINE 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\nridgeline \\- {}\n.SH SYNOPSIS\n"
      ".B ridgeline\nCOMMAND [OPTIONS]\n.SH COMMANDS\n",
      roff(version), roff(program.meaning));
  for (const CommandInfo& each : program.commands) {
    if (!each.hidden) add_man_command(page, each);
  }
  if (!program.notes.empty()) page += fmt::format(".SH NOTES\n{}\n", roff(program.notes));
  page +=
      ".SH EXIT STATUS\n"
      "0: done. 1: a run failed. 2: bad usage or bad input. 128 + n: ended by signal n. "
      "\\fBcompare\\fR has codes of its own.\n"
      ".SH ENVIRONMENT\n";
  add_man_entry(page, "COLUMNS", "Width of tables and help, in place of the terminal's.");
  add_man_entry(page, "RIDGELINE_DATA", "Folder with datasets by name.");
  add_man_entry(page, "RIDGELINE_PYTHON", "Python interpreter that runs the peers.");
  return page;
}

}  // namespace ridgeline::cli
