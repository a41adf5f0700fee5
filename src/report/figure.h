#pragma once

// A figure before it is drawn; plot/draw.h draws it for the page and the files.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/records.h"

namespace ridgeline::report {

enum class FigureKind {
  xy,       // lines, points and roofs over two axes, each linear or logarithmic
  bars,     // by categories of the x axis; side by side, or stacked
  area,     // stacked areas over x
  spans,    // a timeline: bars from begin to end on tracks
  diagram,  // boxes and arrows: a network
};

struct Axis {
  std::string title = {};
  std::string unit = {};
  bool logarithmic = false;
  std::optional<double> low = {}, high = {};  // else from the data
  std::vector<std::string> categories = {};   // of bars: point.x is an index of them
};

struct Point {
  double x = 0.0, y = 0.0;
  std::optional<double> low = {}, high = {};  // interval of y
  std::string label = {};                     // shown beside it and when pointed at
  std::string detail = {};                    // shown only when pointed at
};

enum class SeriesStyle {
  line,         // joined, without marks
  points,       // marks alone
  line_points,  // both: a trajectory
  roof,         // a line behind the others, named along itself, not counted as data
  step,         // joined by steps
};

struct Series {
  std::string name;
  SeriesStyle style = SeriesStyle::line_points;
  std::vector<Point> points;
  // Series of the same group have the same colour; empty: its own.
  std::string group = {};
  bool hidden = false;  // at first; the reader can show it
};

// Of `spans`.
struct Span {
  std::string track;  // tracks are shown in the order of their first spans
  std::string name;   // shown inside where it fits, and when pointed at
  std::string group;  // decides the colour: "forward", "kernel"
  double begin = 0.0, end = 0.0;
};

// Of `diagram`: boxes in columns by their depth, arrows along the data.
struct Node {
  std::string id, title, detail;  // "layer1.0.conv1", "conv2d 3x3", "64x56x56 · 0.23 GFLOP"
  std::string group;              // decides the colour: the op
  double weight = 0.0;            // share of the whole, 0 to 1: how much it stands out
};
struct Edge {
  std::string from, to;  // ids
};

struct Figure {
  std::string id;  // unique in the document, a file name: letters, digits, hyphens
  std::string title, caption = {};
  std::string reading = {};  // what there is to see, in one sentence made from the data
  FigureKind kind = FigureKind::xy;
  Axis x = {}, y = {};
  bool stacked = false;     // bars on top of each other
  bool horizontal = false;  // bars to the right: for long names
  std::vector<Series> series = {};
  std::vector<Span> spans = {};
  std::vector<Node> nodes = {};
  std::vector<Edge> edges = {};
  std::vector<std::string> notes = {};  // footnotes, as a table has them
  std::vector<RunId> runs = {};         // what it rests on
  bool plain = false;                   // its reading says all there is to see

  // Whether there is anything to draw.
  [[nodiscard]] bool empty() const;
};

}  // namespace ridgeline::report
