#pragma once

// Fills in what runs of older programs lack: what their network asks for, and how it is built.

#include "store/store.h"

namespace ridgeline {

// For every migrated run: parameters, multiply-adds, FLOPs and the network's description, from a
// plan that is never run, and the note `complexity` which says so. A network that this program
// cannot build gets the note alone. Does nothing where nothing is lacking.
void complete_runs(Store& store);

}  // namespace ridgeline
