#include "lab/outcome.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"

namespace ridgeline {

using Json = nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CandidateOutcome, model, batch, backend, device, reason)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Outcome, status, reason, left_out, failed)

namespace {

int study_listens = -1;  // the descriptor; -1: no study
Outcome noted;           // its candidates

}  // namespace

std::string outcome_json(const Outcome& outcome) { return json_text(Json(outcome)) + '\n'; }

std::optional<Outcome> parse_outcome(std::string_view json) {
  try {
    return Json::parse(json).get<Outcome>();
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void open_outcome() {
  const std::string name(kOutcomeVariable);
  const char* text = std::getenv(name.c_str());
  if (text == nullptr) return;
  const int file = std::atoi(text);
  if (file > STDERR_FILENO && fcntl(file, F_SETFD, FD_CLOEXEC) == 0) study_listens = file;
  unsetenv(name.c_str());
}

void note_left_out(CandidateOutcome candidate) { noted.left_out.push_back(std::move(candidate)); }
void note_failed(CandidateOutcome candidate) { noted.failed.push_back(std::move(candidate)); }

void tell_outcome(ItemStatus status, const std::string& reason) {
  Outcome outcome = std::exchange(noted, {});
  if (study_listens < 0) return;
  outcome.status = status;
  outcome.reason = reason;
  const std::string text = outcome_json(outcome);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(study_listens, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) break;
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  close(std::exchange(study_listens, -1));
}

}  // namespace ridgeline
