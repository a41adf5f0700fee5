#pragma once

// How ranks are started: by the mpirun that belongs to the MPI of this build.

#include <string>
#include <vector>

namespace ridgeline {

// The words in front of a program that is to run as `count` ranks on this machine; they share its
// processors as threads do. Throws bad_input where MPI or its mpirun is missing.
[[nodiscard]] std::vector<std::string> rank_launcher(int count);

// "note: 4 ranks share 2 processors: ..."; empty: there is one for each.
[[nodiscard]] std::string crowding_note(int ranks);

// Processors that this process may use over `ranks`: the threads of each where none were named.
[[nodiscard]] int threads_among(int ranks);

}  // namespace ridgeline
