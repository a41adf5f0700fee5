#include "base/try_instruction.h"

#include <csetjmp>
#include <csignal>

namespace ridgeline {
namespace {

thread_local sigjmp_buf* refused = nullptr;

void on_refusal(int signal) {
  if (refused != nullptr) siglongjmp(*refused, 1);
  std::signal(signal, SIG_DFL);
  (void)raise(signal);
}

}  // namespace

Trial try_instruction(float (*compute)(), float expected) {
  struct sigaction ours {};
  struct sigaction before {};
  ours.sa_handler = on_refusal;
  sigemptyset(&ours.sa_mask);
  if (sigaction(SIGILL, &ours, &before) != 0) return Trial::refused;
  sigjmp_buf place;
  volatile Trial trial = Trial::refused;
  if (sigsetjmp(place, 1) == 0) {
    refused = &place;
    trial = compute() == expected ? Trial::right : Trial::wrong;
  }
  refused = nullptr;
  (void)sigaction(SIGILL, &before, nullptr);
  return trial;
}

}  // namespace ridgeline
