// Updates of several parameters in one launch: y counts parameters, x shares their elements. The
// buffers are the same for all; the offsets, in bytes, are each parameter's own. Gradients are
// NUMBERs, everything else is float.
#include "kernels/prelude.cl"
#include "kernels/lanes.cl"
#include "kernels/state.cl"

#define MOST 12

typedef struct {
  ulong parameter[MOST], gradient[MOST], first[MOST], second[MOST];
  int elements[MOST];
  int channels[MOST], pixels[MOST];  // of a gradient in nhwc, else 0
} Updates;

// Where the gradient of element i lies.
int gradient_at(const Updates *updates, int t, int i) {
  const int channels = updates->channels[t], pixels = updates->pixels[t];
  if (channels == 0) return i;
  const int filter = i / (channels * pixels), rest = i % (channels * pixels);
  return (filter * pixels + rest % pixels) * channels + rest / pixels;
}

// A work-item's blocks of LANES elements, of which the last may be a part: with several lanes a
// stretch of them, with one every get_global_size(0)-th.
#if LANES == 1
#define ITS_BLOCKS(i, elements) \
  for (int i = get_global_id(0); i < (elements); i += get_global_size(0))
#else
inline int first_element(int id, int elements) {
  const int blocks = (elements + LANES - 1) / LANES, items = get_global_size(0);
  return min((blocks + items - 1) / items * id * LANES, elements);
}
#define ITS_BLOCKS(i, elements)                                                          \
  for (int i = first_element(get_global_id(0), elements),                                \
           end = first_element(get_global_id(0) + 1, elements);                          \
       i < end; i += LANES)
#endif

inline FLOATS load_block(__global const float *from, int i, int elements) {
  if (i + LANES <= elements) return LOAD(from + i);
  float lanes[LANES];
  for (int k = 0; k < LANES; ++k) lanes[k] = i + k < elements ? from[i + k] : 0.0f;
  return LOAD(lanes);
}

inline void store_block(FLOATS block, __global float *to, int i, int elements) {
  if (i + LANES <= elements) {
    STORE(block, to + i);
    return;
  }
  float lanes[LANES];
  STORE(block, lanes);
  for (int k = 0; i + k < elements; ++k) to[i + k] = lanes[k];
}

inline FLOATS load_gradient(const Updates *updates, __global const NUMBER *from, int t, int i) {
  const int elements = updates->elements[t];
  if (updates->channels[t] == 0 && i + LANES <= elements) return READ_LANES(from + i);
  float lanes[LANES];
  for (int k = 0; k < LANES; ++k) {
    lanes[k] = i + k < elements ? READ(from, gradient_at(updates, t, i + k)) : 0.0f;
  }
  return LOAD(lanes);
}

__kernel void sgd(__global char *parameters, __global char *gradients, __global char *firsts,
                  BUFFER(state), const Updates updates, const float momentum, const float decay,
                  const int nesterov) {
  POINTER(const ulong, state);
  if (state[OVERFLOW_SEEN] != 0) return;
  const int t = get_global_id(1), elements = updates.elements[t];
  __global float *parameter = (__global float *)(parameters + updates.parameter[t]);
  __global const NUMBER *gradient = (__global const NUMBER *)(gradients + updates.gradient[t]);
  __global float *velocity = (__global float *)(firsts + updates.first[t]);
  const float rate = float_of_double(state[LEARNING_RATE]);
  const float scale = float_of_double(state[GRADIENT_SCALE]);
  ITS_BLOCKS(i, elements) {
    const FLOATS weight = load_block(parameter, i, elements);
    FLOATS step = load_gradient(&updates, gradient, t, i) / scale + decay * weight;
    if (momentum > 0.0f) {
      const FLOATS v = momentum * load_block(velocity, i, elements) + step;
      store_block(v, velocity, i, elements);
      step = nesterov ? step + momentum * v : v;
    }
    store_block(weight - rate * step, parameter, i, elements);
  }
}

// log_beta1 and log_beta2: 1 - beta^t is -expm1(t * log(beta)), without cancellation.
__kernel void adam(__global char *parameters, __global char *gradients, __global char *firsts,
                   __global char *seconds, BUFFER(state), const Updates updates, const float beta1,
                   const float beta2, const float rest1, const float rest2, const float log_beta1,
                   const float log_beta2, const float epsilon, const float decay,
                   const int decoupled) {
  POINTER(const ulong, state);
  if (state[OVERFLOW_SEEN] != 0) return;
  const int t = get_global_id(1), elements = updates.elements[t];
  __global float *parameter = (__global float *)(parameters + updates.parameter[t]);
  __global const NUMBER *gradient = (__global const NUMBER *)(gradients + updates.gradient[t]);
  __global float *m = (__global float *)(firsts + updates.first[t]);
  __global float *v = (__global float *)(seconds + updates.second[t]);
  const float rate = float_of_double(state[LEARNING_RATE]);
  const float scale = float_of_double(state[GRADIENT_SCALE]);
  const float count = (float)(state[OPTIMIZER_STEP] - state[OVERFLOWS]);
  const float correction1 = beta1 == 0.0f ? 1.0f : -expm1(count * log_beta1);
  const float correction2 = beta2 == 0.0f ? 1.0f : -expm1(count * log_beta2);
  ITS_BLOCKS(i, elements) {
    FLOATS weight = load_block(parameter, i, elements);
    FLOATS diff = load_gradient(&updates, gradient, t, i) / scale;
    if (decoupled) {
      weight *= 1.0f - rate * decay;
    } else {
      diff += decay * weight;
    }
    const FLOATS first = beta1 * load_block(m, i, elements) + rest1 * diff;
    const FLOATS second = beta2 * load_block(v, i, elements) + rest2 * diff * diff;
    store_block(first, m, i, elements);
    store_block(second, v, i, elements);
    const FLOATS denominator = sqrt(second) / sqrt(correction2) + epsilon;
    store_block(weight - rate / correction1 * first / denominator, parameter, i, elements);
  }
}

// One flag for each work-item: whether it saw a number that is not finite.
__kernel void find_overflow(BUFFER(src), BUFFER(flags), const long elements) {
  POINTER(const NUMBER, src);
  POINTER(int, flags);
  int seen = 0;
  for (long i = get_global_id(0); i < elements; i += get_global_size(0)) {
    seen |= isfinite(READ(src, i)) ? 0 : 1;
  }
  flags[get_global_id(0)] = seen;
}

__kernel void note_overflow(BUFFER(flags), BUFFER(state), const long count, const ulong growth,
                            const ulong backoff, const long interval) {
  if (get_global_id(0) != 0) return;
  POINTER(const int, flags);
  POINTER(ulong, state);
  int seen = 0;
  for (long i = 0; i < count; ++i) seen |= flags[i];
  state[GRADIENT_SCALE] = state[LOSS_SCALE];
  state[OVERFLOW_SEEN] = seen;
  if (seen) {
    state[OVERFLOWS] += 1;
    state[LOSS_SCALE] = multiply_doubles(state[LOSS_SCALE], backoff);
    state[STEPS_IN_RANGE] = 0;
  } else if ((long)(state[STEPS_IN_RANGE] += 1) >= interval) {
    state[LOSS_SCALE] = multiply_doubles(state[LOSS_SCALE], growth);
    state[STEPS_IN_RANGE] = 0;
  }
}
