#pragma once

// What a call tells while it works, and what it asks. A program shows it on its terminal; who calls
// the library may do without.

#include <cstdint>
#include <string>

namespace ridgeline {

class CallListener {
 public:
  virtual ~CallListener() = default;
  virtual void note(const std::string& line) { (void)line; }  // for people, without a line's end
  virtual void plan(const std::string& text) { (void)text; }  // --print-plan and --explain
  virtual void progress(std::int64_t done, std::int64_t total, const char* what) {
    (void)done, (void)total, (void)what;
  }
  // Asked between iterations: false ends the call early, with what was measured so far.
  [[nodiscard]] virtual bool go_on() { return true; }
};

}  // namespace ridgeline
