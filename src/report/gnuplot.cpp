#include "report/gnuplot.h"

#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/text_file.h"
#include "lab/peers/line_process.h"
#include "report/plot/draw.h"

namespace ridgeline::report {
namespace {

namespace fs = std::filesystem;
using plot::Drawing;

// A machine that is busy with other things may take long; one that hangs must not stay.
constexpr double kSeconds = 60.0;
// Pixels of a PNG for one of the drawing: sharp in print, and still quick.
constexpr double kPngScale = 1.5;

// Names and titles are shown as they are: no marks for superscripts, no substitutions.
std::string terminal(const std::string& format, const Drawing& drawing) {
  if (format == "svg") {
    // Its sizes are pixels where the others' are points.
    return fmt::format(
        "set terminal svg noenhanced size {},{} font 'DejaVu Sans,9' fontscale 1.3333 background "
        "rgb 'white'",
        drawing.width, drawing.height);
  }
  if (format == "pdf") {
    return fmt::format(
        "set terminal pdfcairo noenhanced size {:.4f}in,{:.4f}in font 'DejaVu Sans,9' fontscale 1 "
        "linewidth 1 background rgb 'white'",
        drawing.width / 96.0, drawing.height / 96.0);
  }
  return fmt::format(
      "set terminal pngcairo noenhanced size {:.0f},{:.0f} font 'DejaVu Sans,9' fontscale {} "
      "linewidth {} pointscale {} background rgb 'white'",
      drawing.width * kPngScale, drawing.height * kPngScale, kPngScale, kPngScale, kPngScale);
}

std::string script_of(const Figure& figure, const plot::Colours& colours, const fs::path& folder,
                      const std::vector<std::string>& formats) {
  const Drawing drawing = plot::draw(figure, colours);
  std::string script = fmt::format(
      "reset\nundefine $*\nset encoding utf8\nunset key\nunset tics\n"
      "set border 3 lc rgb '{}' lw 1\n",
      plot::kFrame);
  const std::size_t plot_begin = drawing.commands.rfind("\nplot ") + 1;
  script += drawing.commands.substr(0, plot_begin);
  for (const std::string& format : formats) {
    script += fmt::format("{}\nset output {}\n{}unset output\n", terminal(format, drawing),
                          plot::in_quotes((folder / (figure.id + '.' + format)).string()),
                          drawing.commands.substr(plot_begin));
  }
  return script;
}

// gnuplot does not notice a full disk.
bool is_whole(const std::string& contents, const std::string& format) {
  const std::string_view end = format == "svg"   ? "</svg>"
                               : format == "pdf" ? "%%EOF"
                                                 : std::string_view("IEND");
  const std::size_t tail = std::min<std::size_t>(contents.size(), 16);
  return contents.find(end, contents.size() - tail) != std::string::npos;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Viewers without the font take another one of its kind.
void name_fonts(const fs::path& path, std::string contents) {
  const std::string fonts = "font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\"";
  replace_all(contents, "font-family=\"DejaVu Sans\"", fonts);
  replace_all(contents, "font-family=\"DejaVu Sans:Bold\"", fonts + " font-weight=\"bold\"");
  write_text(path, contents);
}

void check_pictures(const Figure& figure, const fs::path& folder,
                    const std::vector<std::string>& formats) {
  for (const std::string& format : formats) {
    const fs::path path = folder / (figure.id + '.' + format);
    std::string contents = read_text(path);
    if (!is_whole(contents, format)) {
      fail("{}: gnuplot could not write it whole; is the disk full?", path.string());
    }
    if (format == "svg") name_fonts(path, std::move(contents));
  }
}

// A file for gnuplot to load, gone afterwards.
class Script {
 public:
  explicit Script(const fs::path& folder) : path_(folder / fmt::format(".{}.gp", getpid())) {}
  ~Script() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  void write(const std::string& text) const { write_text(path_, text); }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

bool is_installed() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((fs::path(folder) / "gnuplot").c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace

std::vector<PictureProblem> draw_pictures(std::span<const Figure* const> figures,
                                          const fs::path& folder, const PictureFormats& formats,
                                          const std::function<bool(std::size_t)>& progress) {
  std::vector<std::string> names;
  if (formats.svg) names.emplace_back("svg");
  if (formats.png) names.emplace_back("png");
  if (formats.pdf) names.emplace_back("pdf");
  if (names.empty() || figures.empty()) return {};
  if (!is_installed()) {
    return {{"", "gnuplot was not found; on Debian the package gnuplot-nox has it"}};
  }
  const plot::Colours colours(figures);
  const Script script(folder);
  std::optional<LineProcess> gnuplot;
  std::vector<PictureProblem> problems;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const Figure& figure = *figures[i];
    try {
      script.write(script_of(figure, colours, folder, names));
      if (!gnuplot) gnuplot.emplace(std::vector<std::string>{"gnuplot", "-d", "-"});
      // It tells when it has come to the end.
      const std::string request = fmt::format("load {}; set print '-'; print 'done'; set print",
                                              plot::in_quotes(script.path().string()));
      (void)gnuplot->ask(request, kSeconds);
    } catch (const Error& error) {
      // After an error gnuplot ends: the next figure has a new one.
      gnuplot.reset();
      problems.push_back({figure.id, error.what()});
      for (const std::string& name : names) fs::remove(folder / (figure.id + '.' + name));
      if (!progress(i + 1)) break;
      continue;
    }
    check_pictures(figure, folder, names);
    if (!progress(i + 1)) break;
  }
  return problems;
}

}  // namespace ridgeline::report
