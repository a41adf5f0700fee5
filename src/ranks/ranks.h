#pragma once

// The processes that train one network together, each a rank. MPI starts and joins them; nothing
// here is loaded before ranks are asked for.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

class Ranks {
 public:
  enum class Reduction { sum, maximum };

  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  // Among those on this machine.
  [[nodiscard]] int local_rank() const { return local_rank_; }
  [[nodiscard]] int local_size() const { return local_size_; }
  [[nodiscard]] int nodes() const { return nodes_; }  // machines
  [[nodiscard]] bool first() const { return rank_ == 0; }
  [[nodiscard]] const std::string& transport() const { return transport_; }  // "Open MPI v4.1.4"
  // What joins their devices as well.
  void add_transport(const std::string& name) { transport_ = name + ", " + transport_; }

  // That calls have taken so far, waiting for other ranks counted.
  [[nodiscard]] double seconds() const { return seconds_; }

  // How long a rank waits for the others before it gives the job up.
  void set_patience(double seconds) { patience_ = seconds; }
  [[nodiscard]] double patience() const { return patience_; }
  // Where that time is up: which ranks do not answer, in words. Ranks that ask take some seconds.
  [[nodiscard]] virtual std::string missing() = 0;

  // Every rank calls these in the same order, one at a time, from any thread. They throw a failure
  // that names the ranks that did not come.
  // In place; each rank gets the same bits, and the same ones each time.
  virtual void all_reduce(std::span<float> values, Reduction reduction = Reduction::sum) = 0;
  virtual void all_reduce(std::span<double> values, Reduction reduction = Reduction::sum) = 0;
  virtual void all_reduce(std::span<std::int64_t> values, Reduction reduction = Reduction::sum) = 0;
  // What each rank gives, one behind the other.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

  // As many bytes for each rank, one behind the other; gives those from each.
  virtual void all_to_all(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

  // Texts of any length, one from each rank.
  [[nodiscard]] std::vector<std::string> gather(std::string_view mine);
  [[nodiscard]] bool any(bool here);
  // Returns when all ranks have called it.
  void barrier() { (void)any(false); }

  // What ends this process ends the others too, by themselves and for the same reason: rank 0 alone
  // tells it.
  void end_together() { together_ = true; }
  [[nodiscard]] bool ends_together() const { return together_; }
  // Ends the processes of all ranks at once.
  [[noreturn]] virtual void abort(int code) = 0;
  // Before a process ends by itself. REQUIRES: all ranks do so.
  virtual void finish() = 0;
  // Calls this first then.
  void at_finish(std::function<void()> call) { at_finish_ = std::move(call); }

 protected:
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1, nodes_ = 1;
  std::string transport_;
  double patience_ = 300.0;
  double seconds_ = 0.0;
  bool together_ = false;
  std::function<void()> at_finish_;
};

// The number of ranks of the job that this process was started in, by mpirun or srun; 1: alone.
[[nodiscard]] int launched_ranks();
// Which of them this process is, as far as the launcher told before they are joined.
[[nodiscard]] int launched_rank();

// Joins the others. Throws bad_input where MPI cannot be used. REQUIRES: launched_ranks() > 1.
void join_ranks();
// Those that this process has joined; null: it is alone.
[[nodiscard]] Ranks* joined_ranks();
// Joins those that this process was started with, where there are any.
[[nodiscard]] Ranks* started_ranks();
// In place of MPI's, for tests; null: none.
void use_ranks(Ranks* ranks);

// The threads that fall to a rank where none were named: ranks whose processes may use the same
// processors share them.
[[nodiscard]] int threads_of_rank(Ranks& ranks);

// Whether the MPI that this build uses is Open MPI, whose mpirun has words of its own.
[[nodiscard]] bool joined_by_open_mpi();

// Why ranks cannot be used here; empty when they can.
[[nodiscard]] std::string ranks_unavailable();

}  // namespace ridgeline
