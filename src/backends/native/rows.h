#pragma once

// Every file of native kernels and the rows it exports.

#include "backends/native/activation_backward.h"
#include "backends/native/batch_norm.h"
#include "backends/native/batch_norm_backward.h"
#include "backends/native/concat.h"
#include "backends/native/conv.h"
#include "backends/native/dropout.h"
#include "backends/native/elementwise.h"
#include "backends/native/linear.h"
#include "backends/native/loss.h"
#include "backends/native/normalize.h"
#include "backends/native/optimizer.h"
#include "backends/native/pool.h"
#include "backends/native/pool_backward.h"
