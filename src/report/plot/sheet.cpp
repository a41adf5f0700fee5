#include "report/plot/sheet.h"

#include <algorithm>
#include <array>

#include "report/plot/text_size.h"

namespace ridgeline::report::plot {
namespace {

constexpr double kTitle = 17.0, kTitleLine = 23.0, kLegendLine = 21.0, kNoteLine = 16.0;
constexpr double kGap = 18.0;
constexpr std::size_t kLegendRows = 8, kNoteLines = 8;

// How wide its sample is.
double sample_of(const Entry& entry) { return entry.line ? 30.0 : entry.marker > 0 ? 10.0 : 13.0; }

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

void draw_entry(Canvas& canvas, const Entry& entry, double x, double y) {
  const double sample = sample_of(entry);
  if (entry.line) {
    canvas.line(x, y, x + sample, y, {.colour = entry.colour, .width = 2.0, .dash = entry.dash});
  }
  if (entry.marker > 0) canvas.mark(x + sample / 2.0, y, entry.marker, entry.colour, 0.9);
  if (!entry.line && entry.marker == 0) {
    canvas.box({x, y - sample / 2.0, x + sample, y + sample / 2.0}, entry.colour);
  }
  canvas.text(x + sample + 6.0, y, entry.name, {.size = kSmall});
}

std::vector<std::string> note_lines(const Figure& figure, const std::vector<std::string>& more,
                                    double width) {
  std::vector<std::string> lines;
  for (const auto* notes : {&figure.notes, &more}) {
    for (const std::string& note : *notes) {
      for (std::string& line : wrapped(note, width, kSmall - 1.0)) {
        lines.push_back(std::move(line));
      }
    }
  }
  if (lines.size() > kNoteLines) {
    lines.resize(kNoteLines);
    lines.back() = "…";
  }
  return lines;
}

}  // namespace

Sheet sheet_of(const Figure& figure, const std::vector<Entry>& legend,
               const std::vector<std::string>& notes, double body_height, double width) {
  const double room = width - 2.0 * kMargin;
  const auto title = wrapped(figure.title, room, 1.08 * kTitle, 2);
  const auto entries = placed(legend, room);
  const auto lines = note_lines(figure, notes, room);

  const std::size_t rows = entries.empty() ? 0 : entries.back().row + 1;
  const double header = 10.0 + kTitleLine * static_cast<double>(title.size()) +
                        (rows > 0 ? 4.0 + kLegendLine * static_cast<double>(rows) : 0.0) + 8.0;
  const double footer = lines.empty() ? 8.0 : 14.0 + kNoteLine * static_cast<double>(lines.size());
  Canvas canvas(width, header + body_height + footer);

  double y = 10.0 + kTitleLine / 2.0;
  for (const std::string& line : title) {
    canvas.text(kMargin, y, line, {.size = kTitle, .bold = true});
    y += kTitleLine;
  }
  y += 4.0 + kLegendLine / 2.0 - kTitleLine / 2.0;
  for (const PlacedEntry& entry : entries) {
    draw_entry(canvas, entry.entry, kMargin + entry.x,
               y + kLegendLine * static_cast<double>(entry.row));
  }
  y = header + body_height + 6.0 + kNoteLine / 2.0;
  for (const std::string& line : lines) {
    canvas.text(kMargin, y, line, {.size = kSmall - 1.0, .colour = kSoftInk});
    y += kNoteLine;
  }
  const Box body{kMargin, header, width - kMargin, header + body_height};
  return {std::move(canvas), body};
}

Box frame_of(Canvas& canvas, const Box& body, const std::string& x_title,
             const std::string& y_title, double left, double bottom) {
  const double x_line = x_title.empty() ? 4.0 : 24.0, y_line = y_title.empty() ? 0.0 : 22.0;
  const Box frame{body.left + y_line + left + 10.0, body.top + 8.0, body.right - 14.0,
                  body.bottom - x_line - bottom - 8.0};
  canvas.text((frame.left + frame.right) / 2.0, body.bottom - 11.0,
              shortened(x_title, frame.right - frame.left, 13.0), {.align = 'c'});
  canvas.text(body.left + 6.0, (frame.top + frame.bottom) / 2.0,
              shortened(y_title, frame.bottom - frame.top, 13.0), {.align = 'c', .rotate = 90.0});
  return frame;
}

double widest(const std::vector<Tick>& ticks) {
  double width = 0.0;
  for (const Tick& tick : ticks) width = std::max(width, text_width(tick.label, 12.0));
  return width;
}

int marker(std::size_t index) {
  constexpr std::array<int, 6> kMarkers = {7, 5, 9, 13, 11, 15};
  return kMarkers[index % kMarkers.size()];
}

}  // namespace ridgeline::report::plot
