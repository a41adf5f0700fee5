#include "report/html.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/embedded.h"
#include "base/error.h"
#include "report/contents.h"
#include "report/plot/draw.h"

namespace ridgeline::report {
namespace {

// In the order in which they are read: later ones use what earlier ones define.
constexpr std::array kScripts = {"base.js",  "text.js", "numbers.js", "table.js",
                                 "marks.js", "zoom.js", "figure.js",  "page.js"};
constexpr std::array kStyles = {"page.css", "figure.css"};

std::string_view carried(const std::string& name) {
  const std::optional<std::string_view> text = embedded_file(name);
  if (!text) fail("the program was built without the report's file '{}'", name);
  return *text;
}

// An element's text ends at its first end tag, whatever the script means by it.
std::string checked(std::string text, std::string_view end_tag) {
  if (text.find(end_tag) != std::string::npos) {
    fail("a file of the report's page holds '{}', which would end its element", end_tag);
  }
  return text;
}

// Without the indentation and the lines of comments: they are for those who read the sources.
std::string packed(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty() || line.starts_with("//")) continue;
    out += line;
    out += '\n';
  }
  return out;
}

std::string page_file(const char* name) {
  return packed(carried(fmt::format("src/report/page/{}", name)));
}

std::string page_script() {
  std::string text = "(function () {\n'use strict';\n";
  for (const char* name : kScripts) text += page_file(name);
  return checked(text + "})();\n", "</script");
}

std::string page_style() {
  std::string text;
  for (const char* name : kStyles) text += page_file(name);
  return checked(text, "</style");
}

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k)
      three = three << 8 | (i + k < bytes.size() ? bytes[i + k] : 0u);
    for (std::size_t k = 0; k < 4; ++k) {
      text += i + k <= bytes.size() ? kDigits[three >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

// How a content security policy names an inline script or style that may be used.
std::string source_of(std::string_view text) {
  const std::string hex = digest_of(
      DigestKind::sha256, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return "'sha256-" + base64(bytes) + "'";
}

// All figures, also those that have nothing to draw: the script takes one after the other.
std::string drawings_of(const std::vector<Section>& sections, const plot::Colours& colours) {
  std::string text;
  each_block<Figure>(sections, [&](const Figure& figure) {
    text += plot::page_drawing(figure, plot::draw(figure, colours));
  });
  return text;
}

}  // namespace

std::string html_page(const Document& document) {
  const std::string script = page_script();
  const std::string style = page_style();
  const std::string policy = fmt::format(
      "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; "
      "form-action 'none'",
      source_of(script), source_of(style));
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", policy);
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += "<meta name=\"referrer\" content=\"no-referrer\">\n";
  page += "<meta name=\"color-scheme\" content=\"light dark\">\n";
  page += "<link rel=\"icon\" href=\"data:,\">\n";  // or a server would be asked for one
  page += fmt::format("<title>{}</title>\n", plot::escaped(document.title));
  page += "<style>" + style + "</style>\n</head>\n<body>\n";
  page += fmt::format(
      "<noscript><h1>{}</h1><p>This report is shown by a script. Allow "
      "scripts to read it, or open its Markdown or LaTeX version.</p></noscript>\n",
      plot::escaped(document.title));
  page +=
      "<script type=\"application/json\" id=\"page-data\">" + page_json(document) + "</script>\n";
  const plot::Colours colours(figures_of(document));
  page += "<template id=\"page-drawings\">\n" + drawings_of(document.sections, colours) +
          "</template>\n";
  page += "<script>" + script + "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace ridgeline::report
