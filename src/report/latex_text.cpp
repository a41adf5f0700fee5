// Characters as LaTeX sets them.

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "base/utf8.h"
#include "report/latex.h"

namespace ridgeline::report {
namespace {

struct Character {
  char32_t code;
  const char* latex;
};

// By code: found by bisection.
constexpr Character kCharacters[] = {
    {U'"', "\\textquotedbl{}"},
    {U'#', "\\#"},
    {U'$', "\\$"},
    {U'%', "\\%"},
    {U'&', "\\&"},
    {U'\'', "\\textquotesingle{}"},
    {U'<', "\\textless{}"},
    {U'>', "\\textgreater{}"},
    {U'\\', "\\textbackslash{}"},
    {U'^', "\\textasciicircum{}"},
    {U'_', "\\_"},
    {U'`', "\\textasciigrave{}"},
    {U'{', "\\{"},
    {U'|', "\\textbar{}"},
    {U'}', "\\}"},
    {U'~', "\\textasciitilde{}"},
    {U'\u00a0', "~"},
    {U'\u00b0', "\\textdegree{}"},
    {U'\u00b1', "\\ensuremath{\\pm}"},
    {U'\u00b2', "\\textsuperscript{2}"},
    {U'\u00b3', "\\textsuperscript{3}"},
    {U'\u00b5', "\\ensuremath{\\mu}"},
    {U'\u00b7', "\\ensuremath{\\cdot}"},
    {U'\u00b9', "\\textsuperscript{1}"},
    {U'\u00d7', "\\ensuremath{\\times}"},
    {U'\u00f7', "\\ensuremath{\\div}"},
    {U'\u0394', "\\ensuremath{\\Delta}"},
    {U'\u03a3', "\\ensuremath{\\Sigma}"},
    {U'\u03a9', "\\ensuremath{\\Omega}"},
    {U'\u03b1', "\\ensuremath{\\alpha}"},
    {U'\u03b2', "\\ensuremath{\\beta}"},
    {U'\u03b3', "\\ensuremath{\\gamma}"},
    {U'\u03b4', "\\ensuremath{\\delta}"},
    {U'\u03b5', "\\ensuremath{\\varepsilon}"},
    {U'\u03bb', "\\ensuremath{\\lambda}"},
    {U'\u03bc', "\\ensuremath{\\mu}"},
    {U'\u03c0', "\\ensuremath{\\pi}"},
    {U'\u03c3', "\\ensuremath{\\sigma}"},
    {U'\u2009', "\\,"},
    {U'\u2010', "-"},
    {U'\u2011', "-"},
    {U'\u2012', "--"},
    {U'\u2013', "--"},
    {U'\u2014', "---"},
    {U'\u2018', "`"},
    {U'\u2019', "'"},
    {U'\u201c', "``"},
    {U'\u201d', "''"},
    {U'\u2022', "\\textbullet{}"},
    {U'\u2026', "\\ldots{}"},
    {U'\u202f', "\\,"},
    {U'\u2070', "\\textsuperscript{0}"},
    {U'\u2074', "\\textsuperscript{4}"},
    {U'\u2075', "\\textsuperscript{5}"},
    {U'\u2076', "\\textsuperscript{6}"},
    {U'\u2077', "\\textsuperscript{7}"},
    {U'\u2078', "\\textsuperscript{8}"},
    {U'\u2079', "\\textsuperscript{9}"},
    {U'\u207b', "\\textsuperscript{-}"},
    {U'\u20ac', "\\texteuro{}"},
    {U'\u2190', "\\ensuremath{\\leftarrow}"},
    {U'\u2192', "\\ensuremath{\\rightarrow}"},
    {U'\u2194', "\\ensuremath{\\leftrightarrow}"},
    {U'\u2208', "\\ensuremath{\\in}"},
    {U'\u2211', "\\ensuremath{\\sum}"},
    {U'\u2212', "\\ensuremath{-}"},
    {U'\u221a', "\\ensuremath{\\surd}"},
    {U'\u221e', "\\ensuremath{\\infty}"},
    {U'\u2248', "\\ensuremath{\\approx}"},
    {U'\u2260', "\\ensuremath{\\neq}"},
    {U'\u2264', "\\ensuremath{\\leq}"},
    {U'\u2265', "\\ensuremath{\\geq}"},
};

bool before(const Character& character, char32_t code) { return character.code < code; }

// Letters that the T1 encoding has: those of Latin-1 and of Latin Extended-A, nearly all of them.
bool is_latin(char32_t code) {
  constexpr std::u32string_view kAbsent =
      U"ªºĈĉĊċĐđĔĕĜĝĠġĤĥĦħĨĩĪīĬĭĮįıĲĳĴĵĶķĸĻļĽľĿŀŃńŅņŌōŎŏŖŗŜŝŤťŦŧŨũ"
      U"ŪūŬŭŲųŴŵŶŷſ";
  if (code < 0xc0 || code >= 0x180) return false;
  return kAbsent.find(code) == std::u32string_view::npos;
}

}  // namespace

std::string latex_text(std::string_view text) {
  static_assert(
      std::is_sorted(std::begin(kCharacters), std::end(kCharacters),
                     [](const Character& a, const Character& b) { return a.code < b.code; }));
  std::string result;
  char32_t last = 0;
  while (!text.empty()) {
    const char32_t code = take_character(text);
    const auto* known =
        std::lower_bound(std::begin(kCharacters), std::end(kCharacters), code, before);
    if (known != std::end(kCharacters) && known->code == code) {
      result += known->latex;
    } else if (code < 0x20 || code == 0x7f) {
      result += ' ';
    } else if (code < 0x80 || is_latin(code)) {
      // Two hyphens would become a dash; "?`" cannot arise, as the grave is escaped.
      if (code == U'-' && last == U'-') result += "{}";
      append_utf8(result, code);
    } else {
      result += fmt::format("[U+{:04X}]", static_cast<unsigned>(code));
    }
    last = code;
  }
  return result;
}

}  // namespace ridgeline::report
