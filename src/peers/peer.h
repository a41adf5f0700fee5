#pragma once

// A peer at work: a Python process that trains the same network from the same weights on the same
// batches in another framework, and is asked for its times and losses. docs/peers.md tells what is
// said between the two.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peers/handover.h"
#include "peers/peer_name.h"
#include "store/records.h"
#include "train/step_graph.h"

namespace ridgeline {

struct PeerOptions {
  // Interpreters to try; empty: $RIDGELINE_PYTHON alone where it is set, else /usr/bin/python3 and
  // the python3 of the PATH.
  std::vector<std::string> pythons = {};
  int threads = 0;  // of the framework; 0: its own choice
  // How long an answer may take. Loading a framework for the first time can take a minute,
  // compiling a network several.
  double start_seconds = 120.0, reply_seconds = 600.0;
};

// What a peer is to compute. REQUIRES: the files were made for this step.
struct PeerWork {
  StepSpec step;
  double learning_rate = 0.01;
  bool inference = false;
  std::string device = {};  // "cuda:1"; empty: the first of its kind
};

// How long it took until steps could run; nothing where there is no such phase.
struct PeerSetup {
  double seconds = 0.0;                   // building the network, reading weights and batches
  std::optional<double> compile_seconds;  // first runs that compile or capture, before any sample
};

struct PeerMemory {
  std::int64_t rss_bytes = 0, peak_rss_bytes = 0;          // of its process
  std::optional<std::int64_t> peak_bytes, reserved_bytes;  // as the framework tells of its device
};

// The Python worker as one file, joined from its parts.
[[nodiscard]] std::string worker_script();

// Whether a peer can run here, or why not and what to install.
struct PeerAvailability {
  bool available = false;
  std::string reason;                           // empty where it is available
  std::string python;                           // the interpreter that has it
  std::map<std::string, std::string> versions;  // "torch" -> "2.11.0", "python" -> "3.11.2"
};

// Starts and ends a worker to ask it. Never throws for something that is missing.
[[nodiscard]] PeerAvailability peer_availability(const PeerName& name,
                                                 const PeerOptions& options = {});

// Whether the modules of a peer are installed. Loads no framework, which would take seconds: one
// that is installed may still fail to run. `versions` has that of the framework, where it is known.
[[nodiscard]] std::map<std::string, PeerAvailability> installed_peers(
    const PeerOptions& options = {});

// One thread calls it. A worker that crashes, hangs or talks nonsense is ended with everything it
// started, and the call throws a failure with its last words; the other calls then fail, too. An
// error that the worker reports itself (out of memory, say) leaves it alive. The destructor ends
// it.
class Peer {
 public:
  // Throws bad_input with the reason where the peer cannot run here.
  explicit Peer(const PeerName& name, const PeerOptions& options = {});
  ~Peer();
  Peer(Peer&&) noexcept;
  Peer& operator=(Peer&&) noexcept;

  [[nodiscard]] const PeerName& name() const;
  [[nodiscard]] const PeerAvailability& about() const;

  // Builds the network and loads weights and batches. May be called again for other work. Throws
  // bad_input where this peer does not do such work, with the reason.
  PeerSetup prepare(const PeerWork& work, const PeerFiles& files);

  // The functions below REQUIRE a successful prepare().

  // Runs steps and times each alone, waited for before the clock is read. `kind` goes into the
  // samples; `split` runs the phases one after another, and gives no samples where they cannot be
  // told apart. With `upload` each step first brings its
  // batch to the device, timed apart; otherwise one batch lies there.
  [[nodiscard]] std::vector<Sample> step(std::int64_t count, SampleKind kind = SampleKind::measured,
                                         bool upload = false);

  // The mean of `count` steps that follow each other unwaited for; nothing on the CPU, which queues
  // none. Where the peer cannot read its device's own clock, the device's time is the host's.
  [[nodiscard]] std::optional<Sample> queued(std::int64_t count);

  // The loss of each of some steps from the initial weights on, batch after batch, without dropout;
  // of inference, the losses of the batches. NaN where it is not finite. Then everything is as it
  // was after prepare().
  [[nodiscard]] std::vector<double> losses(std::int64_t steps);

  [[nodiscard]] PeerMemory memory();
  // "cpu", "cuda:0" with what the framework calls it, in words.
  [[nodiscard]] std::string device_name() const;

  // Processor time of the worker so far; nothing where it has ended.
  [[nodiscard]] std::optional<double> processor_seconds() const;

  // Ends the worker; afterwards only the destructor may be called.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Starts a worker for each peer once to see whether it runs; that one then does the first work:
// loading a framework takes seconds. One thread calls it.
class PeerStarts {
 public:
  [[nodiscard]] const PeerAvailability& availability(const PeerName& name,
                                                     const PeerOptions& options);
  // A worker of its own for every call. Throws as Peer's constructor does.
  [[nodiscard]] Peer take(const PeerName& name, const PeerOptions& options);

 private:
  struct Known {
    PeerAvailability about;
    std::optional<Peer> waiting;
  };
  std::map<std::string, Known> known_;  // by the peer's name with its options
};

}  // namespace ridgeline
