#pragma once

// The command line as a function: it gives the exit code.
extern "C" __attribute__((visibility("default"))) int rl_main(int argc, char** argv);
