// The program's beginning. In a wheel the commands lie in libridgeline.so, which holds all once.

#include "cli/main.h"

int main(int argc, char** argv) { return rl_main(argc, argv); }
