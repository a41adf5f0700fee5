#include "audit/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <vector>

#include "base/parse.h"

namespace ridgeline::audit {
namespace {

struct KnownUnit {
  std::string_view name;
  Dimension dimension;
  double scale;
};

constexpr double kKi = 1024.0, kMi = kKi * kKi, kGi = kMi * kKi;

// Lower case; both micro signs.
constexpr std::array kKnownUnits = std::to_array<KnownUnit>({
    {"ns", Dimension::time, 1e-9},
    {"us", Dimension::time, 1e-6},
    {"µs", Dimension::time, 1e-6},
    {"μs", Dimension::time, 1e-6},
    {"ms", Dimension::time, 1e-3},
    {"msec", Dimension::time, 1e-3},
    {"millisecond", Dimension::time, 1e-3},
    {"s", Dimension::time, 1.0},
    {"sec", Dimension::time, 1.0},
    {"second", Dimension::time, 1.0},
    {"min", Dimension::time, 60.0},
    {"minute", Dimension::time, 60.0},
    {"h", Dimension::time, 3600.0},
    {"hr", Dimension::time, 3600.0},
    {"hour", Dimension::time, 3600.0},
    {"img/s", Dimension::throughput, 1.0},
    {"image/s", Dimension::throughput, 1.0},
    {"sample/s", Dimension::throughput, 1.0},
    {"frame/s", Dimension::throughput, 1.0},
    {"fps", Dimension::throughput, 1.0},
    {"ips", Dimension::throughput, 1.0},
    {"flop/s", Dimension::flop_rate, 1.0},
    {"mflop/s", Dimension::flop_rate, 1e6},
    {"gflop/s", Dimension::flop_rate, 1e9},
    {"tflop/s", Dimension::flop_rate, 1e12},
    {"pflop/s", Dimension::flop_rate, 1e15},
    {"flop", Dimension::flops, 1.0},
    {"mflop", Dimension::flops, 1e6},
    {"gflop", Dimension::flops, 1e9},
    {"tflop", Dimension::flops, 1e12},
    {"mac", Dimension::macs, 1.0},
    {"mmac", Dimension::macs, 1e6},
    {"gmac", Dimension::macs, 1e9},
    {"byte", Dimension::bytes, 1.0},
    {"kb", Dimension::bytes, 1e3},
    {"mb", Dimension::bytes, 1e6},
    {"gb", Dimension::bytes, 1e9},
    {"tb", Dimension::bytes, 1e12},
    {"kib", Dimension::bytes, kKi},
    {"mib", Dimension::bytes, kMi},
    {"gib", Dimension::bytes, kGi},
    {"gb/s", Dimension::bandwidth, 1e9},
    {"gib/s", Dimension::bandwidth, kGi},
    {"tb/s", Dimension::bandwidth, 1e12},
    {"b/s", Dimension::bandwidth, 1.0},
    {"%", Dimension::share, 0.01},
    {"percent", Dimension::share, 0.01},
    {"pct", Dimension::share, 0.01},
    {"x", Dimension::ratio, 1.0},
    {"×", Dimension::ratio, 1.0},
    {"flop/byte", Dimension::intensity, 1.0},
    {"flop/b", Dimension::intensity, 1.0},
    {"gflop/mb", Dimension::intensity, 1e3},
    {"gflop/gb", Dimension::intensity, 1.0},
    {"mflop/mb", Dimension::intensity, 1.0},
    {"w", Dimension::power, 1.0},
    {"watt", Dimension::power, 1.0},
    {"°c", Dimension::temperature, 1.0},
    {"k", Dimension::multiple, 1e3},
    {"m", Dimension::multiple, 1e6},
    {"million", Dimension::multiple, 1e6},
    {"g", Dimension::multiple, 1e9},
    {"billion", Dimension::multiple, 1e9},
});

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

const KnownUnit* known_unit(std::string_view name) {
  const auto found = std::ranges::find(kKnownUnits, name, &KnownUnit::name);
  return found == kKnownUnits.end() ? nullptr : &*found;
}

// One spelling of many: "images per second", "imgs/sec" and "Images/s" are "image/s".
std::string usual_spelling(std::string_view text) {
  std::string name = lower_case(trim(text));
  replace_all(name, " per ", "/");
  replace_all(name, " / ", "/");
  replace_all(name, "seconds", "s");
  replace_all(name, "second", "s");
  replace_all(name, "/sec", "/s");
  replace_all(name, "images", "image");
  replace_all(name, "imgs", "img");
  replace_all(name, "samples", "sample");
  replace_all(name, "flops", "flop");
  replace_all(name, "macs", "mac");
  replace_all(name, "bytes", "byte");
  // "img_s" and "gflops_s", where a name has no slash.
  for (const std::string_view end : {" s", " sec"}) {
    const std::string_view front = std::string_view(name).substr(0, name.rfind(' '));
    const bool rate =
        front == "img" || front == "image" || front == "sample" || front.ends_with("flop");
    if (name.ends_with(end) && rate) return std::string(front) + "/s";
  }
  return name;
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Words of a name: "batchTime_ms" has batch, time and ms; "ResNet50" stays one.
std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words(1);
  char before = ' ';
  for (const char c : text) {
    const bool part = is_letter(c) || is_digit(c) || static_cast<unsigned char>(c) >= 0x80;
    const bool hump = std::isupper(static_cast<unsigned char>(c)) != 0 &&
                      std::islower(static_cast<unsigned char>(before)) != 0 &&
                      words.back().size() > 3;
    if ((!part || hump) && !words.back().empty()) words.emplace_back();
    if (part) words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    before = c;
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// A unit at the end of a name, with its words: "throughput img/s", "batch_time_ms",
// "samples_per_second".
std::optional<Unit> unit_at_end(std::string& name) {
  std::string blanks = name;
  std::ranges::replace(blanks, '_', ' ');
  for (const std::size_t count : {3U, 2U, 1U}) {
    std::size_t at = blanks.size();
    for (std::size_t i = 0; i < count && at != std::string::npos && at > 0; ++i) {
      at = blanks.rfind(' ', at - 1);
    }
    if (at == std::string::npos) {
      // The whole name may be a unit, "ms", "img s"; a single letter is not enough.
      const auto blank_count = static_cast<std::size_t>(std::ranges::count(blanks, ' '));
      if (blank_count + 1 != count || blanks.size() < 2) continue;
      at = 0;
    }
    const std::string_view tail = trim(std::string_view(blanks).substr(at));
    auto unit = find_unit(tail);
    if (!unit || unit->dimension == Dimension::multiple) continue;
    name.resize(at);
    return unit;
  }
  return std::nullopt;
}

// "1 h 15 min", "2 min 05 s".
std::optional<Quantity> duration_in(std::string_view text) {
  double seconds = 0.0;
  int parts = 0;
  while (!text.empty()) {
    double number = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return std::nullopt;
    text = trim(text.substr(static_cast<std::size_t>(end - text.data())));
    const auto letters = static_cast<std::size_t>(
        std::ranges::find_if(text, [](char c) { return c == ' ' || is_digit(c); }) - text.begin());
    const auto unit = find_unit(text.substr(0, letters));
    if (!unit || unit->dimension != Dimension::time) return std::nullopt;
    seconds += number * unit->scale;
    text = trim(text.substr(letters));
    ++parts;
  }
  if (parts < 2) return std::nullopt;
  return Quantity{seconds, Dimension::time};
}

}  // namespace

std::optional<Unit> find_unit(std::string_view text) {
  const std::string name = usual_spelling(text);
  if (name.empty()) return std::nullopt;
  const KnownUnit* found = known_unit(name);
  if (found == nullptr && name.size() > 2 && name.ends_with('s')) {
    found = known_unit(std::string_view(name).substr(0, name.size() - 1));
  }
  if (found == nullptr) return std::nullopt;
  return Unit{std::string(trim(text)), found->dimension, found->scale};
}

std::optional<Quantity> find_quantity(std::string_view text) {
  text = trim(text);
  for (const std::string_view about : {"~", "≈", "ca.", "<", ">"}) {
    if (text.starts_with(about)) text = trim(text.substr(about.size()));
  }
  std::string digits;
  std::size_t end = 0;
  while (end < text.size()) {
    const char c = text[end];
    const bool exponent = (c == 'e' || c == 'E') && end + 1 < text.size() &&
                          (is_digit(text[end + 1]) || text[end + 1] == '-') && !digits.empty();
    const bool sign = (c == '-' || c == '+') && (end == 0 || text[end - 1] == 'e');
    if (!is_digit(c) && c != '.' && c != ',' && !sign && !exponent) break;
    if (c != ',') digits += c;
    ++end;
  }
  const auto number = number_in<double>(digits);
  if (!number) return std::nullopt;
  const std::string_view rest = trim(text.substr(end));
  if (rest.empty()) return Quantity{*number, Dimension::none};
  if (const auto unit = find_unit(rest)) return Quantity{*number * unit->scale, unit->dimension};
  return duration_in(text);
}

Title read_title(std::string_view title) {
  Title result;
  std::string name(trim(title));
  const std::size_t open = name.find_last_of("([");
  if (open != std::string::npos && (name.ends_with(')') || name.ends_with(']'))) {
    const std::string inside = name.substr(open + 1, name.size() - open - 2);
    result.unit = find_unit(inside);
    if (result.unit) name.resize(open);
  }
  // "FLOPs/image (G)", "time, ms"
  if (!result.unit) {
    const std::size_t comma = name.rfind(',');
    if (comma != std::string::npos) {
      result.unit = find_unit(std::string_view(name).substr(comma + 1));
      if (result.unit) name.resize(comma);
    }
  }
  if (name.ends_with('%')) {
    name.pop_back();
    if (!result.unit) result.unit = find_unit("%");
  }
  if (!result.unit) result.unit = unit_at_end(name);
  for (const std::string& word : words_in(name)) {
    if (!result.words.empty()) result.words += ' ';
    result.words += word;
  }
  return result;
}

}  // namespace ridgeline::audit
