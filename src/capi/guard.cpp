#include "capi/guard.h"

#include <pthread.h>

#include "build_info.h"

namespace ridgeline::capi {
namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

}  // namespace

void set_last_error(const std::string& text) noexcept {
  try {
    last_error() = text;
  } catch (const std::exception&) {
    last_error().clear();
  }
}

void check_process() {
  // Told by the system, because asking for the process's number takes a third of a microsecond.
  static std::atomic<bool> forked = false;
  [[maybe_unused]] static const int told = pthread_atfork(nullptr, nullptr, [] { forked = true; });
  if (forked) {
    throw HandleError(
        "this process was forked from one that had used Ridgeline, whose threads do not exist "
        "here; start processes with 'spawn' or 'forkserver', or use Ridgeline only after the fork");
  }
}

}  // namespace ridgeline::capi

using namespace ridgeline::capi;

int rl_abi(void) { return RL_ABI; }

const char* rl_version(void) {
  static const std::string text =
      fmt::format("{} ({})", ridgeline::build_info::version, ridgeline::build_info::revision);
  return text.c_str();
}

const char* rl_last_error(void) { return last_error().c_str(); }

void rl_free(char* text) { std::free(text); }
