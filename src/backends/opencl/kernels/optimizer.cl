// Updates of several parameters in one launch: y counts parameters, x elements. The buffers are the
// same for all; the offsets, in bytes, are each parameter's own.
#include "kernels/prelude.cl"
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

__kernel void sgd(__global char *parameters, __global char *gradients, __global char *firsts,
                  BUFFER(state), const Updates updates, const float momentum, const float decay,
                  const int nesterov) {
  POINTER(const ulong, state);
  if (state[OVERFLOW_SEEN] != 0) return;
  const int t = get_global_id(1);
  __global float *parameter = (__global float *)(parameters + updates.parameter[t]);
  __global const float *gradient = (__global const float *)(gradients + updates.gradient[t]);
  __global float *velocity = (__global float *)(firsts + updates.first[t]);
  const float rate = float_of_double(state[LEARNING_RATE]);
  const float scale = float_of_double(state[GRADIENT_SCALE]);
  for (int i = get_global_id(0); i < updates.elements[t]; i += get_global_size(0)) {
    float step = gradient[gradient_at(&updates, t, i)] / scale + decay * parameter[i];
    if (momentum > 0.0f) {
      const float v = momentum * velocity[i] + step;
      velocity[i] = v;
      step = nesterov ? step + momentum * v : v;
    }
    parameter[i] -= rate * step;
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
  const int t = get_global_id(1);
  __global float *parameter = (__global float *)(parameters + updates.parameter[t]);
  __global const float *gradient = (__global const float *)(gradients + updates.gradient[t]);
  __global float *m = (__global float *)(firsts + updates.first[t]);
  __global float *v = (__global float *)(seconds + updates.second[t]);
  const float rate = float_of_double(state[LEARNING_RATE]);
  const float scale = float_of_double(state[GRADIENT_SCALE]);
  const float count = (float)(state[OPTIMIZER_STEP] - state[OVERFLOWS]);
  const float correction1 = beta1 == 0.0f ? 1.0f : -expm1(count * log_beta1);
  const float correction2 = beta2 == 0.0f ? 1.0f : -expm1(count * log_beta2);
  for (int i = get_global_id(0); i < updates.elements[t]; i += get_global_size(0)) {
    float weight = parameter[i], diff = gradient[gradient_at(&updates, t, i)] / scale;
    if (decoupled) {
      weight *= 1.0f - rate * decay;
    } else {
      diff += decay * weight;
    }
    const float first = beta1 * m[i] + rest1 * diff;
    const float second = beta2 * v[i] + rest2 * diff * diff;
    m[i] = first;
    v[i] = second;
    const float denominator = sqrt(second) / sqrt(correction2) + epsilon;
    parameter[i] = weight - rate / correction1 * first / denominator;
  }
}

// One flag for each work-item: whether it saw a number that is not finite.
__kernel void find_overflow(BUFFER(src), BUFFER(flags), const long elements) {
  POINTER(const float, src);
  POINTER(int, flags);
  int seen = 0;
  for (long i = get_global_id(0); i < elements; i += get_global_size(0)) {
    seen |= isfinite(src[i]) ? 0 : 1;
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
