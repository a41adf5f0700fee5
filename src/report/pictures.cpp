#include "report/pictures.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <future>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/text_file.h"
#include "base/writable.h"
#include "peers/handover.h"
#include "peers/line_process.h"
#include "report/plot/draw.h"

namespace ridgeline::report {
namespace {

namespace fs = std::filesystem;

// A machine that is busy with other things may take long; one that hangs must not stay.
constexpr double kSeconds = 60.0;
constexpr std::size_t kMostConverters = 4;

struct Conversion {
  std::string_view ending, format, zoom;
};
// PNG is sharp in print, and still quick.
constexpr Conversion kPng{".png", "png", "1.5"}, kPdf{".pdf", "pdf", "1"};

constexpr const char* kNotFound =
    "rsvg-convert was not found; on Debian the package librsvg2-bin has it";

// Each line names a picture, a format and a scale.
constexpr const char* kScript =
    "cd \"$0\" && if [ -n \"$1\" ]; then export XDG_DATA_HOME=\"$1\"; fi; "
    "while read -r id format zoom; do "
    "rsvg-convert -f $format -z $zoom -o $id.$format $id.svg && echo done || exit; done";

// A wheel has the font of the drawings in the folder `fonts` beside the library, because a system
// may have none. Fontconfig looks for such a folder in $XDG_DATA_HOME.
std::string fonts_home() {
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&draw_pictures), &own) == 0) return {};
  const fs::path folder = fs::path(own.dli_fname).parent_path();
  const bool found = folder.is_absolute() && fs::exists(folder / "fonts" / "DejaVuSans.ttf");
  return found ? folder.string() : std::string();
}

std::vector<std::string> converter_in(const fs::path& folder) {
  return {"/bin/sh", "-c", kScript, folder.string(), fonts_home()};
}

void ask_for(LineProcess& converter, std::string_view id, const Conversion& conversion) {
  (void)converter.ask(fmt::format("{} {} {}", id, conversion.format, conversion.zoom), kSeconds);
}

bool is_installed() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((fs::path(folder) / "rsvg-convert").c_str(), X_OK) == 0) return true;
  }
  return false;
}

// A full disk can go unnoticed.
void check_whole(const fs::path& path) {
  const std::string contents = read_text(path);
  const std::string_view end = path.extension() == ".pdf" ? "%%EOF" : "IEND";
  const std::size_t tail = std::min<std::size_t>(contents.size(), 16);
  if (contents.find(end, contents.size() - tail) == std::string::npos) {
    fail("{}: rsvg-convert could not write it whole; is the disk full?", path.string());
  }
}

// Draws figures into a folder, by several threads.
class Studio {
 public:
  Studio(std::span<const Figure* const> figures, const fs::path& folder,
         const PictureFormats& formats, const std::function<bool(std::size_t)>& progress)
      : figures_(figures), colours_(figures), folder_(folder), progress_(progress) {
    keep_svg_ = formats.svg;
    if (formats.png) conversions_.push_back(kPng);
    if (formats.pdf) conversions_.push_back(kPdf);
    if (conversions_.empty() || is_installed()) return;
    conversions_.clear();
    problems_.push_back({"", kNotFound});
  }

  std::vector<PictureProblem> draw() {
    if (!keep_svg_ && conversions_.empty()) return problems_;
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t count = conversions_.empty() ? 1 : std::min(cores, kMostConverters);
    std::vector<std::future<void>> workers;
    for (std::size_t i = 0; i < count; ++i) {
      workers.push_back(std::async(std::launch::async, [this] { work(); }));
    }
    for (std::future<void>& worker : workers) worker.wait();
    for (std::future<void>& worker : workers) worker.get();
    return problems_;
  }

 private:
  void work() {
    std::optional<LineProcess> converter;
    while (const Figure* figure = next()) {
      const fs::path svg = folder_ / (figure->id + ".svg");
      write_text(svg, plot::svg_file(*figure, plot::draw(*figure, colours_)));
      for (const Conversion& conversion : conversions_) convert(*figure, conversion, converter);
      if (!keep_svg_) fs::remove(svg);
      const std::lock_guard lock(mutex_);
      stopped_ = stopped_ || !progress_(++done_);
    }
  }

  const Figure* next() {
    const std::lock_guard lock(mutex_);
    return stopped_ || begun_ == figures_.size() ? nullptr : figures_[begun_++];
  }

  void convert(const Figure& figure, const Conversion& conversion,
               std::optional<LineProcess>& converter) {
    const fs::path path = folder_ / fmt::format("{}{}", figure.id, conversion.ending);
    try {
      if (!converter) converter.emplace(converter_in(folder_));
      ask_for(*converter, figure.id, conversion);
    } catch (const Error& error) {
      // After an error it has ended: the next picture has a new one.
      converter.reset();
      fs::remove(path);
      const std::lock_guard lock(mutex_);
      problems_.push_back({figure.id, error.what()});
      return;
    }
    check_whole(path);
  }

  std::span<const Figure* const> figures_;
  plot::Colours colours_;
  fs::path folder_;
  const std::function<bool(std::size_t)>& progress_;
  bool keep_svg_ = true;
  std::vector<Conversion> conversions_;
  std::mutex mutex_;  // of all below
  std::vector<PictureProblem> problems_;
  std::size_t begun_ = 0, done_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::vector<PictureProblem> draw_pictures(std::span<const Figure* const> figures,
                                          const fs::path& folder, const PictureFormats& formats,
                                          const std::function<bool(std::size_t)>& progress) {
  if (figures.empty()) return {};
  return Studio(figures, folder, formats, progress).draw();
}

void check_picture(const fs::path& file) {
  if (file.empty()) return;
  const fs::path ending = file.extension();
  if (ending != ".svg" && ending != kPng.ending && ending != kPdf.ending) {
    bad_input("{}: the name of a picture ends with .svg, .png or .pdf", file.string());
  }
  if (ending != ".svg" && !is_installed()) {
    fail("{}: {}. SVG files need nothing", file.string(), kNotFound);
  }
  check_writable(file.string());
}

void save_picture(const std::string& svg, const fs::path& path) {
  check_picture(path);
  const std::string ending = path.extension().string();
  if (ending == ".svg") return write_durably(path, svg);
  const TemporaryFolder folder("pictures");
  const fs::path made = folder.path() / ("picture" + ending);
  write_text(folder.path() / "picture.svg", svg);
  LineProcess converter(converter_in(folder.path()));
  ask_for(converter, "picture", ending == kPng.ending ? kPng : kPdf);
  check_whole(made);
  write_durably(path, read_text(made));
}

void save_picture(const Figure& figure, const fs::path& path) {
  const std::array<const Figure*, 1> all = {&figure};
  save_picture(plot::svg_file(figure, plot::draw(figure, plot::Colours(all))), path);
}

}  // namespace ridgeline::report
