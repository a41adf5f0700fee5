// The Document as the page's scripts read it. Short keys and arrays keep it small: points are
// [x, y, low, high, label, detail] without what is missing at the end, spans are [track, name,
// group, begin, end, row] with indices of lists. How figures look is in their drawings.

#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json_text.h"
#include "report/html.h"
#include "report/plot/draw.h"

namespace ridgeline::report {
namespace {

using Json = nlohmann::ordered_json;

Json number_json(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}
Json number_json(const std::optional<double>& value) {
  return value ? number_json(*value) : Json(nullptr);
}

// Tooltips have fewer digits, and timelines, which can be zoomed, need more.
Json drawn(double value, int digits = 6) {
  if (!std::isfinite(value)) return nullptr;
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits).ptr;
  double rounded = 0.0;
  std::from_chars(text, end, rounded);
  if (rounded == std::floor(rounded) && std::abs(rounded) < 1e15) {
    return static_cast<std::int64_t>(rounded);
  }
  return rounded;
}
Json drawn(const std::optional<double>& value) { return value ? drawn(*value) : Json(nullptr); }

// Left out where there is nothing to say.
void put(Json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}
void put(Json& object, const char* key, bool flag) {
  if (flag) object[key] = true;
}
template <typename Each>
void put(Json& object, const char* key, const std::vector<Each>& list) {
  if (!list.empty()) object[key] = list;
}

// Ids become anchors of the page: of letters, digits and hyphens, each once. Rows of the list of
// runs are "run-N" and the page's own elements "page-…".
class Ids {
 public:
  std::string unique(const std::string& wanted) {
    std::string id;
    for (const char c : wanted) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      id += plain || c == '-' || c == '_' ? c : '-';
    }
    if (id.empty() || id.starts_with("run-") || id.starts_with("page-")) id = "x-" + id;
    std::string candidate = id;
    for (int count = 2; !taken_.insert(candidate).second; ++count) {
      candidate = id + "-" + std::to_string(count);
    }
    return candidate;
  }

 private:
  std::set<std::string> taken_;
};

// The place of each text in a list without repetitions.
class Words {
 public:
  std::size_t index(const std::string& word) {
    const auto [place, added] = places_.emplace(word, list_.size());
    if (added) list_.push_back(word);
    return place->second;
  }
  [[nodiscard]] const std::vector<std::string>& list() const { return list_; }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> list_;
};

Json pieces_json(const std::vector<Piece>& pieces) {
  Json list = Json::array();
  for (const Piece& piece : pieces) {
    if (piece.runs.empty() && !piece.strong) {
      list.push_back(piece.text);
      continue;
    }
    Json entry = {{"text", piece.text}};
    put(entry, "runs", piece.runs);
    put(entry, "strong", piece.strong);
    list.push_back(std::move(entry));
  }
  return list;
}

Json cell_json(const Cell& cell) {
  const bool only_text =
      !cell.value && !cell.low && !cell.high && cell.notes.empty() && cell.runs.empty();
  if (only_text) return cell.text;
  Json entry = {{"t", cell.text}};
  if (cell.value) entry["v"] = number_json(cell.value);
  if (cell.low) entry["l"] = number_json(cell.low);
  if (cell.high) entry["h"] = number_json(cell.high);
  put(entry, "n", cell.notes);
  put(entry, "r", cell.runs);
  return entry;
}

Json table_json(const Table& table, Ids& ids) {
  Json object = {{"block", "table"}, {"id", ids.unique(table.id)}, {"title", table.title}};
  put(object, "runs", table.id == "runs");  // texts link to its rows
  put(object, "caption", table.caption);
  Json columns = Json::array();
  for (const TableColumn& column : table.columns) {
    Json entry = {{"title", column.title}};
    put(entry, "unit", column.unit);
    put(entry, "number", column.number);
    put(entry, "meaning", column.meaning);
    put(entry, "away", column.shown != Shown::column);
    columns.push_back(std::move(entry));
  }
  object["columns"] = std::move(columns);
  Json rows = Json::array();
  std::vector<std::string> groups;
  for (const std::vector<Cell>& row : table.rows) {
    Json cells = Json::array();
    groups.push_back(group_text(table, row));
    for (const Cell& cell : row) cells.push_back(cell_json(cell));
    rows.push_back(std::move(cells));
  }
  object["rows"] = std::move(rows);
  if (!groups.empty() && !groups.front().empty()) object["groups"] = groups;
  put(object, "notes", table.notes);
  return object;
}

// In the order of the enumerations.
constexpr std::array<const char*, 5> kKindNames = {"xy", "bars", "area", "spans", "diagram"};
constexpr std::array<const char*, 5> kStyleNames = {"line", "points", "line_points", "roof",
                                                    "step"};

template <typename Value>
const char* name_in(const std::array<const char*, 5>& names, Value value) {
  return names.at(static_cast<std::size_t>(value));
}

Json axis_json(const Axis& axis) {
  Json object = {{"title", axis.title}};
  put(object, "unit", axis.unit);
  put(object, "log", axis.logarithmic);
  if (axis.low && std::isfinite(*axis.low)) object["low"] = *axis.low;
  if (axis.high && std::isfinite(*axis.high)) object["high"] = *axis.high;
  put(object, "categories", axis.categories);
  return object;
}

Json point_json(const Point& point) {
  Json list = {drawn(point.x), drawn(point.y)};
  const bool says = !point.label.empty() || !point.detail.empty();
  if (point.low || point.high || says) {
    list.push_back(drawn(point.low));
    list.push_back(drawn(point.high));
  }
  if (says) list.push_back(point.label);
  if (!point.detail.empty()) list.push_back(point.detail);
  return list;
}

Json series_json(const std::vector<Series>& series) {
  Json list = Json::array();
  for (const Series& each : series) {
    Json object = {{"name", each.name}, {"style", name_in(kStyleNames, each.style)}};
    put(object, "group", each.group);
    put(object, "hidden", each.hidden);
    Json points = Json::array();
    for (const Point& point : each.points) points.push_back(point_json(point));
    object["points"] = std::move(points);
    list.push_back(std::move(object));
  }
  return list;
}

void put_spans(Json& object, const Figure& figure) {
  Words tracks, names, groups;
  Json spans = Json::array();
  const auto rows = plot::span_rows(figure);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Span& span = figure.spans[i];
    spans.push_back({tracks.index(span.track), names.index(span.name), groups.index(span.group),
                     drawn(span.begin, 9), drawn(span.end, 9)});
    if (rows[i]) spans.back().push_back(*rows[i]);
  }
  object["tracks"] = tracks.list();
  object["names"] = names.list();
  object["groups"] = groups.list();
  object["spans"] = std::move(spans);
}

// Edges name their ends by index; one whose end is unknown is left out.
void put_diagram(Json& object, const Figure& figure) {
  std::map<std::string, std::size_t> places;
  Json nodes = Json::array();
  for (std::size_t i = 0; i < figure.nodes.size(); ++i) {
    const Node& node = figure.nodes[i];
    places.emplace(node.id, i);
    Json entry = {{"id", node.id}, {"title", node.title}};
    put(entry, "detail", node.detail);
    put(entry, "group", node.group);
    if (std::isfinite(node.weight) && node.weight > 0.0) entry["weight"] = drawn(node.weight);
    nodes.push_back(std::move(entry));
  }
  Json edges = Json::array();
  for (const Edge& edge : figure.edges) {
    const auto from = places.find(edge.from), to = places.find(edge.to);
    if (from == places.end() || to == places.end()) continue;
    edges.push_back({from->second, to->second});
  }
  object["nodes"] = std::move(nodes);
  object["edges"] = std::move(edges);
}

Json figure_json(const Figure& figure, Ids& ids) {
  Json object = {{"block", "figure"},
                 {"id", ids.unique(figure.id)},
                 {"title", figure.title},
                 {"kind", name_in(kKindNames, figure.kind)}};
  put(object, "caption", figure.caption);
  put(object, "reading", figure.reading);
  object["x"] = axis_json(figure.x);
  object["y"] = axis_json(figure.y);
  put(object, "stacked", figure.stacked);
  put(object, "horizontal", figure.horizontal);
  if (figure.kind == FigureKind::spans) {
    put_spans(object, figure);
  } else if (figure.kind == FigureKind::diagram) {
    put_diagram(object, figure);
  } else {
    object["series"] = series_json(figure.series);
  }
  put(object, "notes", figure.notes);
  put(object, "runs", figure.runs);
  return object;
}

struct BlockJson {
  Ids& ids;
  Json operator()(const Paragraph& block) const {
    return {{"block", "paragraph"}, {"pieces", pieces_json(block.pieces)}};
  }
  Json operator()(const Listing& block) const {
    return {{"block", "listing"}, {"text", block.text}};
  }
  Json operator()(const Notice& block) const {
    return {{"block", "notice"},
            {"severity", block.severity},
            {"name", block.name},
            {"pieces", pieces_json(block.pieces)}};
  }
  Json operator()(const Judgement& block) const {
    return {{"block", "judgement"},
            {"statement", block.statement},
            {"verdict", block.verdict},
            {"pieces", pieces_json(block.pieces)},
            {"tested", block.tested}};
  }
  Json operator()(const Cards& block) const {
    Json cards = Json::array();
    for (const Card& card : block.cards) {
      Json entry = {{"number", card.number}, {"pieces", pieces_json(card.pieces)}};
      put(entry, "target", card.target);
      Json bars = Json::array();
      for (const Card::Bar& bar : card.bars) {
        bars.push_back({bar.name, number_json(bar.value), bar.text});
      }
      entry["bars"] = std::move(bars);
      cards.push_back(std::move(entry));
    }
    return {{"block", "cards"}, {"cards", std::move(cards)}};
  }
  Json operator()(const Table& block) const { return table_json(block, ids); }
  Json operator()(const Figure& block) const { return figure_json(block, ids); }
};

Json sections_json(const std::vector<Section>& sections, Ids& ids) {
  Json list = Json::array();
  for (const Section& section : sections) {
    Json object = {{"id", ids.unique(section.id)}, {"title", section.title}};
    Json blocks = Json::array();
    for (const Block& block : section.blocks) blocks.push_back(std::visit(BlockJson{ids}, block));
    object["blocks"] = std::move(blocks);
    put(object, "folded", section.folded);
    if (!section.sections.empty()) object["sections"] = sections_json(section.sections, ids);
    list.push_back(std::move(object));
  }
  return list;
}

// These occur inside strings only, where an escape means the same character.
std::string inside_script(const std::string& json) {
  std::string text;
  text.reserve(json.size() + json.size() / 16);
  for (std::size_t i = 0; i < json.size(); ++i) {
    switch (json[i]) {
      case '<':
        text += "\\u003c";
        break;
      case '>':
        text += "\\u003e";
        break;
      case '&':
        text += "\\u0026";
        break;
      case '\xe2':  // U+2028 and U+2029 end lines of scripts
        if (json.compare(i, 3, "\xe2\x80\xa8") == 0 || json.compare(i, 3, "\xe2\x80\xa9") == 0) {
          text += json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
          i += 2;
          break;
        }
        [[fallthrough]];
      default:
        text += json[i];
    }
  }
  return text;
}

}  // namespace

std::string page_json(const Document& document) {
  Ids ids;
  Json object = {{"title", document.title},
                 {"subtitle", document.subtitle},
                 {"generated", document.generated},
                 {"program", document.program},
                 {"sections", sections_json(document.sections, ids)}};
  return inside_script(json_text(object));
}

}  // namespace ridgeline::report
