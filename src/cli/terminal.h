#pragma once

// Shows a call of the library on the terminal: messages, plans, a progress bar; Ctrl-C ends it
// early.

#include <optional>
#include <string>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "lab/listener.h"

namespace ridgeline::cli {

class Terminal final : public CallListener {
 public:
  // With `json`, standard output is for one document alone: plans go to standard error.
  explicit Terminal(bool json) : json_(json) {}

  void note(const std::string& line) override;
  void plan(const std::string& text) override;
  void progress(std::int64_t done, std::int64_t total, const char* what) override {
    bar_.show(done, total, what);
  }
  [[nodiscard]] bool go_on() override;

  void clear() { bar_.clear(); }
  [[nodiscard]] int signal() const { return interrupt_ ? interrupt_->signal() : 0; }

 private:
  bool json_;
  ProgressBar bar_;
  std::optional<InterruptGuard> interrupt_;
};

}  // namespace ridgeline::cli
