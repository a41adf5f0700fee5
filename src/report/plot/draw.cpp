// Drawings of all kinds, and what stands around them: a description, and in files title, legend and
// notes.

#include "report/plot/draw.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "report/plot/text_size.h"

namespace ridgeline::report::plot {
namespace {

constexpr double kMargin = 16.0, kGap = 18.0;
constexpr double kTitle = 17.0, kTitleLine = 23.0, kLegendLine = 21.0, kNoteLine = 16.0;
constexpr double kWide = 1.25 * kWidth;  // on the page not made smaller: it scrolls
constexpr std::size_t kLegendRows = 8, kNoteLines = 8;

// How wide its sample is.
double sample_of(const Entry& entry) { return entry.line ? 30.0 : entry.marker >= 0 ? 10.0 : 13.0; }

struct PlacedEntry {
  Entry entry;
  double x = 0.0;
  std::size_t row = 0;
};

// Entries side by side, in as many rows as they need.
std::vector<PlacedEntry> placed(const std::vector<Entry>& legend, double width) {
  std::vector<PlacedEntry> result;
  double x = 0.0;
  std::size_t row = 0;
  for (const Entry& entry : legend) {
    if (!entry.in_files || entry.name.empty()) continue;
    PlacedEntry next{entry, 0.0, 0};
    next.entry.name = shortened(entry.name, 0.6 * width, kSmall);
    const double needs = sample_of(entry) + 6.0 + text_width(next.entry.name, kSmall);
    if (x > 0.0 && x + needs > width) {
      x = 0.0;
      if (++row == kLegendRows) {
        result.back().entry.name = "…";
        break;
      }
    }
    next.x = x;
    next.row = row;
    x += needs + kGap;
    result.push_back(std::move(next));
  }
  return result;
}

void draw_sample(Svg& svg, const Entry& entry, double x, double y) {
  const double sample = sample_of(entry);
  const std::string& colour = entry.paint.colour;
  if (entry.line) svg.line(x, y, x + sample, y, stroked(colour, 2.0, 1.0, entry.dash));
  if (entry.marker >= 0) {
    svg.path(mark_path(entry.marker, x + sample / 2.0, y, 4.0), filled(colour));
  }
  if (!entry.line && entry.marker < 0) {
    svg.box({x, y - sample / 2.0, x + sample, y + sample / 2.0}, filled(colour, entry.paint.shade));
  }
}

std::vector<std::string> note_lines(const Figure& figure, const Drawing& drawing) {
  std::vector<std::string> notes = figure.notes;
  notes.insert(notes.end(), drawing.notes.begin(), drawing.notes.end());
  std::vector<std::string> hidden;
  for (const Series& series : figure.series) {
    if (series.hidden && !series.points.empty()) hidden.push_back(series.name);
  }
  if (!hidden.empty()) notes.push_back(fmt::format("Not drawn here: {}.", joined(hidden, ", ")));
  std::vector<std::string> lines;
  for (const std::string& note : notes) {
    for (std::string& line : wrapped(note, drawing.width, kSmall - 1.0)) {
      lines.push_back(std::move(line));
    }
  }
  if (lines.size() > kNoteLines) {
    lines.resize(kNoteLines);
    lines.back() = "…";
  }
  return lines;
}

// For those who cannot see it.
std::string description_of(const Figure& figure) {
  const auto of_axes = [&](const char* kind) {
    std::vector<std::string> names;
    for (const Series& series : figure.series) names.push_back(series.name);
    return fmt::format("{} of {} by {}. Series: {}.", kind, title_of(figure.y), title_of(figure.x),
                       joined(names, ", "));
  };
  switch (figure.kind) {
    case FigureKind::xy:
      return of_axes("Plot");
    case FigureKind::bars:
      return of_axes("Bar chart");
    case FigureKind::area:
      return of_axes("Stacked areas");
    case FigureKind::spans:
      return fmt::format("Timeline of {} spans.", figure.spans.size());
    case FigureKind::diagram:
      break;
  }
  return fmt::format("Diagram of {} boxes and {} arrows.", figure.nodes.size(),
                     figure.edges.size());
}

std::string label_of(const Figure& figure) {
  return fmt::format(R"(role="img" aria-label="{}. {}")", escaped(figure.title),
                     escaped(description_of(figure)));
}

}  // namespace

Drawing draw(const Figure& figure, const Colours& colours) {
  switch (figure.kind) {
    case FigureKind::xy:
      return draw_xy(figure, colours);
    case FigureKind::bars:
      return draw_bars(figure, colours);
    case FigureKind::area:
      return draw_area(figure, colours);
    case FigureKind::spans:
      return draw_spans(figure, colours);
    case FigureKind::diagram:
      break;
  }
  return draw_diagram(figure, colours);
}

std::string page_drawing(const Figure& figure, const Drawing& drawing) {
  std::string page = fmt::format(
      R"(<div><svg class="{6}" viewBox="0 0 {0} {1}" width="{0}" height="{1}" {2} {3} {4}>)"
      "{5}</svg>",
      px(drawing.width), px(drawing.height), kTextDefaults, label_of(figure), drawing.data,
      drawing.elements, drawing.width > kWide ? "plot wide" : "plot");
  for (const Entry& entry : drawing.legend) {
    Svg sample;
    draw_sample(sample, entry, 0.0, 7.0);
    page += fmt::format(
        R"(<svg class="swatch" viewBox="0 0 {0} 14" width="{0}" height="14" aria-hidden="true">)"
        "{1}</svg>",
        px(sample_of(entry)), std::move(sample).text());
  }
  for (const std::string& note : drawing.notes) {
    page += fmt::format(R"(<p class="caption">{}</p>)", escaped(note));
  }
  return page + "</div>\n";
}

std::string svg_file(const Figure& figure, const Drawing& drawing) {
  const auto title = wrapped(figure.title, drawing.width, 1.08 * kTitle, 2);
  const auto entries = placed(drawing.legend, drawing.width);
  const auto lines = note_lines(figure, drawing);
  const std::size_t rows = entries.empty() ? 0 : entries.back().row + 1;
  const double header = 10.0 + kTitleLine * static_cast<double>(title.size()) +
                        (rows > 0 ? 4.0 + kLegendLine * static_cast<double>(rows) : 0.0) + 8.0;
  const double footer = lines.empty() ? 8.0 : 14.0 + kNoteLine * static_cast<double>(lines.size());
  const double width = drawing.width + 2.0 * kMargin, height = header + drawing.height + footer;

  Svg svg;
  svg.box({0.0, 0.0, width, height}, filled(kPaper));
  double y = 10.0 + kTitleLine / 2.0;
  for (const std::string& line : title) {
    svg.text(kMargin, y, line, {.size = kTitle, .bold = true});
    y += kTitleLine;
  }
  y += 4.0 + kLegendLine / 2.0 - kTitleLine / 2.0;
  for (const auto& [entry, x, row] : entries) {
    const double middle = y + kLegendLine * static_cast<double>(row);
    draw_sample(svg, entry, kMargin + x, middle);
    svg.text(kMargin + x + sample_of(entry) + 6.0, middle, entry.name, {.size = kSmall});
  }
  y = header + drawing.height + 6.0 + kNoteLine / 2.0;
  for (const std::string& line : lines) {
    svg.text(kMargin, y, line, {.size = kSmall - 1.0, .colour = kSoft});
    y += kNoteLine;
  }
  return light_colours(fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" )"
      R"(font-family="DejaVu Sans, Verdana, Helvetica, Arial, sans-serif" {7} {2}>{3})"
      "<g transform=\"translate({4} {5})\">{6}</g></svg>\n",
      px(width), px(height), label_of(figure), std::move(svg).text(), px(kMargin), px(header),
      drawing.elements, kTextDefaults));
}

}  // namespace ridgeline::report::plot
