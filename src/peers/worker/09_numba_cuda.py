# ---- Numba: loops as CUDA kernels ------------------------------------------------------------------------------------

class CudaLoops(Host):
    """One thread for each number of the result; sums over images meet by atomic additions."""
    BLOCK = 128

    def __init__(self, device):
        global cuda  # Numba's simulator (NUMBA_ENABLE_CUDASIM=1) looks for it there
        import numpy as np
        from numba import cuda
        self.np, self.cuda = np, cuda
        self.number = int(device.split(":")[1]) if device else 0
        cuda.select_device(self.number)
        self.bytes = 0
        value, slope = activation_functions(cuda.jit(device=True))
        float32 = np.float32

        @cuda.jit
        def fill(x, number):
            k = cuda.grid(1)
            if k < x.shape[0]:
                x[k] = number

        @cuda.jit
        def normalise(pixels, scale, shift, x):
            k = cuda.grid(1)
            if k < x.size:
                j, i = k % x.shape[3], k // x.shape[3] % x.shape[2]
                c, n = k // (x.shape[3] * x.shape[2]) % x.shape[1], k // (x.shape[3] * x.shape[2] * x.shape[1])
                x[n, c, i, j] = float32(pixels[n, c, i, j]) * scale[c] + shift[c]

        @cuda.jit
        def conv_forward(x, w, b, pad, y):
            k = cuda.grid(1)
            if k >= y.size:
                return
            j, i = k % y.shape[3], k // y.shape[3] % y.shape[2]
            f, n = k // (y.shape[3] * y.shape[2]) % y.shape[1], k // (y.shape[3] * y.shape[2] * y.shape[1])
            total = b[f]
            for c in range(x.shape[1]):
                for u in range(max(0, pad - i), min(w.shape[2], x.shape[2] + pad - i)):
                    for v in range(max(0, pad - j), min(w.shape[3], x.shape[3] + pad - j)):
                        total += w[f, c, u, v] * x[n, c, i + u - pad, j + v - pad]
            y[n, f, i, j] = total

        @cuda.jit
        def conv_backward_data(dy, w, pad, dx):
            k = cuda.grid(1)
            if k >= dx.size:
                return
            j, i = k % dx.shape[3], k // dx.shape[3] % dx.shape[2]
            c, n = k // (dx.shape[3] * dx.shape[2]) % dx.shape[1], k // (dx.shape[3] * dx.shape[2] * dx.shape[1])
            total = float32(0)
            for f in range(dy.shape[1]):
                for u in range(w.shape[2]):
                    for v in range(w.shape[3]):
                        p, q = i - u + pad, j - v + pad
                        if p >= 0 and q >= 0 and p < dy.shape[2] and q < dy.shape[3]:
                            total += w[f, c, u, v] * dy[n, f, p, q]
            dx[n, c, i, j] = total

        @cuda.jit
        def conv_backward_weights(x, dy, pad, dw, db):
            k = cuda.grid(1)
            if k >= dw.size * x.shape[0]:
                return
            n, k = k // dw.size, k % dw.size
            v, u = k % dw.shape[3], k // dw.shape[3] % dw.shape[2]
            c, f = k // (dw.shape[3] * dw.shape[2]) % dw.shape[1], k // (dw.shape[3] * dw.shape[2] * dw.shape[1])
            total, bias = float32(0), float32(0)
            for i in range(max(0, pad - u), min(dy.shape[2], x.shape[2] + pad - u)):
                for j in range(max(0, pad - v), min(dy.shape[3], x.shape[3] + pad - v)):
                    total += dy[n, f, i, j] * x[n, c, i + u - pad, j + v - pad]
            cuda.atomic.add(dw, (f, c, u, v), total)
            if c == 0 and u == 0 and v == 0:
                for i in range(dy.shape[2]):
                    for j in range(dy.shape[3]):
                        bias += dy[n, f, i, j]
                cuda.atomic.add(db, f, bias)

        @cuda.jit
        def pool_forward(x, y, choice):
            k = cuda.grid(1)
            if k >= y.size:
                return
            j, i = k % y.shape[3], k // y.shape[3] % y.shape[2]
            c, n = k // (y.shape[3] * y.shape[2]) % y.shape[1], k // (y.shape[3] * y.shape[2] * y.shape[1])
            best, place = x[n, c, 2 * i, 2 * j], 0
            for m in range(1, 4):
                other = x[n, c, 2 * i + m // 2, 2 * j + m % 2]
                if other > best:
                    best, place = other, m
            y[n, c, i, j] = best
            choice[n, c, i, j] = place

        @cuda.jit
        def pool_backward(dy, choice, dx):
            k = cuda.grid(1)
            if k >= dx.size:
                return
            j, i = k % dx.shape[3], k // dx.shape[3] % dx.shape[2]
            c, n = k // (dx.shape[3] * dx.shape[2]) % dx.shape[1], k // (dx.shape[3] * dx.shape[2] * dx.shape[1])
            p, q = i // 2, j // 2
            inside = p < dy.shape[2] and q < dy.shape[3]
            if inside and choice[n, c, p, q] == i % 2 * 2 + j % 2:
                dx[n, c, i, j] = dy[n, c, p, q]
            else:
                dx[n, c, i, j] = 0

        @cuda.jit
        def dense_forward(x, w, b, y):
            k = cuda.grid(1)
            if k < y.size:
                n, o = k // y.shape[1], k % y.shape[1]
                total = b[o]
                for i in range(x.shape[1]):
                    total += x[n, i] * w[o, i]
                y[n, o] = total

        @cuda.jit
        def dense_backward_data(dy, w, dx):
            k = cuda.grid(1)
            if k < dx.size:
                n, i = k // dx.shape[1], k % dx.shape[1]
                total = float32(0)
                for o in range(dy.shape[1]):
                    total += dy[n, o] * w[o, i]
                dx[n, i] = total

        @cuda.jit
        def dense_backward_weights(x, dy, dw, db):
            k = cuda.grid(1)
            if k < dw.size:
                o, i = k // dw.shape[1], k % dw.shape[1]
                total, bias = float32(0), float32(0)
                for n in range(x.shape[0]):
                    total += dy[n, o] * x[n, i]
                    bias += dy[n, o]
                dw[o, i] = total
                if i == 0:
                    db[o] = bias

        @cuda.jit
        def activation_forward(kind, x, y):
            k = cuda.grid(1)
            if k < x.shape[0]:
                y[k] = value(kind, x[k])

        @cuda.jit
        def activation_backward(kind, x, dy, dx):
            k = cuda.grid(1)
            if k < x.shape[0]:
                dx[k] = dy[k] * slope(kind, x[k])

        @cuda.jit
        def loss(logits, labels, smoothing, losses, diff):
            n = cuda.grid(1)
            rows, classes = logits.shape
            if n >= rows:
                return
            top, total, sum_of_logs = logits[n, 0], float32(0), float32(0)
            for o in range(classes):
                top = max(top, logits[n, o])
            for o in range(classes):
                total += math.exp(logits[n, o] - top)
            for o in range(classes):
                sum_of_logs += logits[n, o] - top - math.log(total)
                target = smoothing / classes
                if o == labels[n]:
                    target += 1 - smoothing
                diff[n, o] = (math.exp(logits[n, o] - top) / total - target) / rows
            chosen = logits[n, labels[n]] - top - math.log(total)
            losses[n] = -(1 - smoothing) * chosen - smoothing * sum_of_logs / classes

        @cuda.jit
        def sgd(w, g, velocity, rate, momentum, decay, nesterov):
            k = cuda.grid(1)
            if k < w.shape[0]:
                gradient = g[k] + decay * w[k]
                velocity[k] = momentum * velocity[k] + gradient
                w[k] -= rate * (gradient + momentum * velocity[k] if nesterov else velocity[k])

        @cuda.jit
        def adam(w, g, first, second, rate, beta1, beta2, epsilon, decay, decoupled, correction1, correction2):
            k = cuda.grid(1)
            if k < w.shape[0]:
                if decoupled:
                    w[k] -= rate * decay * w[k]
                gradient = g[k] if decoupled else g[k] + decay * w[k]
                first[k] = beta1 * first[k] + (1 - beta1) * gradient
                second[k] = beta2 * second[k] + (1 - beta2) * gradient * gradient
                w[k] -= rate / correction1 * first[k] / (math.sqrt(second[k] / correction2) + epsilon)

        # A kernel starts with as many threads as an argument has elements: its position is given here.
        for position, kernel in ((3, normalise), (4, conv_forward), (3, conv_backward_data), (1, pool_forward),
                                 (2, pool_backward), (3, dense_forward), (2, dense_backward_data),
                                 (2, dense_backward_weights), (2, activation_forward), (3, activation_backward),
                                 (3, loss), (0, sgd), (0, adam)):
            setattr(self, kernel.__name__, self.launcher(kernel, position))
        self.fill, self.weights_kernel = self.launcher(fill, 0), conv_backward_weights

    def launcher(self, kernel, position):
        def launch(*arguments):
            kernel[(arguments[position].size + self.BLOCK - 1) // self.BLOCK, self.BLOCK](*arguments)
        return launch

    def conv_backward_weights(self, x, dy, pad, dw, db):
        self.fill(dw.reshape(dw.size), 0.0)
        self.fill(db, 0.0)
        threads = dw.size * x.shape[0]
        self.weights_kernel[(threads + self.BLOCK - 1) // self.BLOCK, self.BLOCK](x, dy, pad, dw, db)

    def array(self, values):
        self.bytes += values.nbytes
        return self.cuda.to_device(self.np.ascontiguousarray(values))

    def empty(self, shape, dtype="float32"):
        array = self.cuda.device_array(shape, dtype=dtype)
        self.bytes += array.nbytes
        return array

    def copy(self, source, target):
        target.copy_to_device(self.np.ascontiguousarray(source) if isinstance(source, self.np.ndarray) else source)

    def on_host(self, array):
        return array.copy_to_host()

    def synchronize(self):
        self.cuda.synchronize()

    def mark(self):
        event = self.cuda.event(timing=True)
        event.record()
        return event

    def memory(self):
        return (self.bytes, None)  # the arrays: Numba keeps no account of its own

    def device_name(self):
        name = self.cuda.get_current_device().name
        return "cuda:{} {}".format(self.number, name.decode() if isinstance(name, bytes) else name)


