#pragma once

#include <string>

namespace ridgeline {

// Throws bad_input when a file cannot be written at `path`; leaves nothing behind. An empty path
// asks for no file. Called before long work whose result goes there.
void check_writable(const std::string& path);

}  // namespace ridgeline
