// StepState (ops/step_state.h) as numbers of 64 bits: its doubles are read as bits.
#include "kernels/doubles.cl"

#define LEARNING_RATE 0
#define OPTIMIZER_STEP 1
#define SEED 2
#define RANDOM_STEP 3
#define EPOCH 4
#define VALID_ROWS 5
#define FIRST_ROW 6
#define LOSS_SCALE 7
#define GRADIENT_SCALE 8
#define OVERFLOW_SEEN 9
#define OVERFLOWS 10
#define STEPS_IN_RANGE 11
