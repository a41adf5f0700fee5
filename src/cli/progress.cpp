#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "cli/output.h"

namespace ridgeline::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kWidth = 30;

}  // namespace

ProgressBar::ProgressBar()
    : terminal_(isatty(STDERR_FILENO) != 0), start_(steady_clock::now()), last_(start_) {}

void ProgressBar::show(std::int64_t done, std::int64_t total, const char* what) {
  if (!terminal_ || total < 1) return;
  // What an earlier call did, and another kind of work, tells nothing of the time that is left.
  if (done < first_ || first_ < 0) {
    first_ = done;
    start_ = steady_clock::now();
  }
  const steady_clock::time_point now = steady_clock::now();
  if (now - start_ < milliseconds(1000) || (drawn_ && now - last_ < milliseconds(100))) return;
  last_ = now;
  drawn_ = true;
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const int filled = static_cast<int>(share * kWidth);
  const double left = std::chrono::duration<double>(now - start_).count() *
                      static_cast<double>(std::max<std::int64_t>(total - done, 0)) /
                      static_cast<double>(std::max<std::int64_t>(done - first_, 1));
  message(fmt::format("\r\033[K[{:#<{}}{:.<{}}] {:3.0f}%  {} {}/{}  {} left", "", filled, "",
                      kWidth - filled, 100.0 * share, what, done, total, duration_text(left)));
}

void ProgressBar::clear() {
  if (!drawn_) return;
  message("\r\033[K");
  drawn_ = false;
}

}  // namespace ridgeline::cli
