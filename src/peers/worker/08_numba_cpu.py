# ---- Numba: loops on the CPU -----------------------------------------------------------------------------------------

def activation_functions(jit):
    """value(kind, z) and slope(kind, z); kinds are positions in ACTIVATIONS."""
    @jit
    def value(kind, z):
        if kind == 0:
            return max(z, z * 0)
        if kind == 1:
            return min(max(z, z * 0), z * 0 + 6)
        if kind == 2:
            return z if z > 0 else z * LEAKY_SLOPE
        if kind == 4:
            return math.tanh(z)
        sigmoid = 1 / (1 + math.exp(-z))
        return sigmoid if kind == 3 else z * sigmoid

    @jit
    def slope(kind, z):
        if kind == 0:
            return 1.0 if z > 0 else 0.0
        if kind == 1:
            return 1.0 if 0 < z < 6 else 0.0
        if kind == 2:
            return 1.0 if z > 0 else LEAKY_SLOPE
        if kind == 4:
            return 1 - math.tanh(z) * math.tanh(z)
        sigmoid = 1 / (1 + math.exp(-z))
        return sigmoid * (1 - sigmoid) if kind == 3 else sigmoid * (1 + z * (1 - sigmoid))

    return value, slope


class CpuLoops(Host):
    """Loops over images, channels and pixels; the outermost is shared among the threads."""

    def __init__(self, device):
        import numba
        import numpy as np
        prange, jit = numba.prange, numba.njit(parallel=True, fastmath=True)
        value, slope = activation_functions(numba.njit(fastmath=True))
        self.np, self.numba = np, numba

        @jit
        def normalise(pixels, scale, shift, x):
            for n in prange(x.shape[0]):
                for c in range(x.shape[1]):
                    for i in range(x.shape[2]):
                        for j in range(x.shape[3]):
                            x[n, c, i, j] = pixels[n, c, i, j] * scale[c] + shift[c]

        @jit
        def conv_forward(x, w, b, pad, y):
            for nf in prange(y.shape[0] * y.shape[1]):
                n, f = nf // y.shape[1], nf % y.shape[1]
                y[n, f, :, :] = b[f]
                for c in range(x.shape[1]):
                    for u in range(w.shape[2]):
                        for v in range(w.shape[3]):
                            factor = w[f, c, u, v]
                            for i in range(max(0, pad - u), min(y.shape[2], x.shape[2] + pad - u)):
                                for j in range(max(0, pad - v), min(y.shape[3], x.shape[3] + pad - v)):
                                    y[n, f, i, j] += factor * x[n, c, i + u - pad, j + v - pad]

        @jit
        def conv_backward_data(dy, w, pad, dx):
            for nc in prange(dx.shape[0] * dx.shape[1]):
                n, c = nc // dx.shape[1], nc % dx.shape[1]
                dx[n, c, :, :] = 0
                for f in range(dy.shape[1]):
                    for u in range(w.shape[2]):
                        for v in range(w.shape[3]):
                            factor = w[f, c, u, v]
                            for i in range(max(0, pad - u), min(dy.shape[2], dx.shape[2] + pad - u)):
                                for j in range(max(0, pad - v), min(dy.shape[3], dx.shape[3] + pad - v)):
                                    dx[n, c, i + u - pad, j + v - pad] += factor * dy[n, f, i, j]

        @jit
        def conv_backward_weights(x, dy, pad, dw, db):
            columns = dw.shape[1] * dw.shape[2] * dw.shape[3]
            for k in prange(dw.shape[0] * columns):
                f, c = k // columns, k % columns // (dw.shape[2] * dw.shape[3])
                u, v = k // dw.shape[3] % dw.shape[2], k % dw.shape[3]
                total = np.float32(0)
                for n in range(x.shape[0]):
                    for i in range(max(0, pad - u), min(dy.shape[2], x.shape[2] + pad - u)):
                        for j in range(max(0, pad - v), min(dy.shape[3], x.shape[3] + pad - v)):
                            total += dy[n, f, i, j] * x[n, c, i + u - pad, j + v - pad]
                dw[f, c, u, v] = total
            for f in prange(db.shape[0]):
                total = np.float32(0)
                for n in range(dy.shape[0]):
                    for i in range(dy.shape[2]):
                        for j in range(dy.shape[3]):
                            total += dy[n, f, i, j]
                db[f] = total

        @jit
        def pool_forward(x, y, choice):
            for n in prange(y.shape[0]):
                for c in range(y.shape[1]):
                    for i in range(y.shape[2]):
                        for j in range(y.shape[3]):
                            best, place = x[n, c, 2 * i, 2 * j], 0
                            for k in range(1, 4):
                                other = x[n, c, 2 * i + k // 2, 2 * j + k % 2]
                                if other > best:
                                    best, place = other, k
                            y[n, c, i, j], choice[n, c, i, j] = best, place

        @jit
        def pool_backward(dy, choice, dx):
            for n in prange(dy.shape[0]):
                dx[n, :, :, :] = 0
                for c in range(dy.shape[1]):
                    for i in range(dy.shape[2]):
                        for j in range(dy.shape[3]):
                            k = choice[n, c, i, j]
                            dx[n, c, 2 * i + k // 2, 2 * j + k % 2] = dy[n, c, i, j]

        @jit
        def dense_forward(x, w, b, y):
            for n in prange(y.shape[0]):
                for o in range(y.shape[1]):
                    total = b[o]
                    for i in range(x.shape[1]):
                        total += x[n, i] * w[o, i]
                    y[n, o] = total

        @jit
        def dense_backward_data(dy, w, dx):
            for n in prange(dx.shape[0]):
                dx[n, :] = 0
                for o in range(dy.shape[1]):
                    for i in range(dx.shape[1]):
                        dx[n, i] += dy[n, o] * w[o, i]

        @jit
        def dense_backward_weights(x, dy, dw, db):
            for o in prange(dw.shape[0]):
                dw[o, :] = 0
                total = np.float32(0)
                for n in range(x.shape[0]):
                    total += dy[n, o]
                    for i in range(x.shape[1]):
                        dw[o, i] += dy[n, o] * x[n, i]
                db[o] = total

        @jit
        def activation_forward(kind, x, y):
            for k in prange(x.shape[0]):
                y[k] = value(kind, x[k])

        @jit
        def activation_backward(kind, x, dy, dx):
            for k in prange(x.shape[0]):
                dx[k] = dy[k] * slope(kind, x[k])

        @jit
        def loss(logits, labels, smoothing, losses, diff):
            rows, classes = logits.shape
            for n in prange(rows):
                top, total, sum_of_logs = logits[n, 0], 0.0, 0.0
                for o in range(classes):
                    top = max(top, logits[n, o])
                for o in range(classes):
                    total += math.exp(logits[n, o] - top)
                for o in range(classes):
                    sum_of_logs += logits[n, o] - top - math.log(total)
                    target = (1 - smoothing) * (o == labels[n]) + smoothing / classes
                    diff[n, o] = (math.exp(logits[n, o] - top) / total - target) / rows
                chosen = logits[n, labels[n]] - top - math.log(total)
                losses[n] = -(1 - smoothing) * chosen - smoothing * sum_of_logs / classes

        @jit
        def sgd(w, g, velocity, rate, momentum, decay, nesterov):
            for k in prange(w.shape[0]):
                gradient = g[k] + decay * w[k]
                velocity[k] = momentum * velocity[k] + gradient
                w[k] -= rate * (gradient + momentum * velocity[k] if nesterov else velocity[k])

        @jit
        def adam(w, g, first, second, rate, beta1, beta2, epsilon, decay, decoupled, correction1, correction2):
            for k in prange(w.shape[0]):
                if decoupled:
                    w[k] -= rate * decay * w[k]
                gradient = g[k] if decoupled else g[k] + decay * w[k]
                first[k] = beta1 * first[k] + (1 - beta1) * gradient
                second[k] = beta2 * second[k] + (1 - beta2) * gradient * gradient
                w[k] -= rate / correction1 * first[k] / (math.sqrt(second[k] / correction2) + epsilon)

        for loop in (normalise, conv_forward, conv_backward_data, conv_backward_weights, pool_forward, pool_backward,
                     dense_forward, dense_backward_data, dense_backward_weights, activation_forward,
                     activation_backward, loss, sgd, adam):
            setattr(self, loop.__name__, loop)

    def array(self, values):
        return self.np.array(values)

    def empty(self, shape, dtype="float32"):
        return self.np.empty(shape, dtype=dtype)

    def copy(self, source, target):
        target[...] = source

    def on_host(self, array):
        return array

    def set_threads(self, threads):
        if threads > 0:
            self.numba.set_num_threads(min(threads, self.numba.config.NUMBA_NUM_THREADS))


