# ---- What all peers have -----------------------------------------------------------------------------------------------

class Host:
    """Where a peer computes: the host's processor, which needs no synchronisation and has no clock of its own."""

    def synchronize(self):
        pass

    def mark(self):
        """A point in the device's own time; nothing where it has none."""
        return None

    def between(self, begin, end):
        return begin.elapsed_time(end) / 1e3

    def memory(self):
        """Bytes: the most in use and the most reserved; nothing where they are not counted."""
        return (None, None)

    def device_name(self):
        return "cpu"

    def set_threads(self, threads):
        pass  # most libraries were told by the environment before they were loaded: see limit_threads


class Peer(Host):
    """Forward, backward and update as phases, no dropout, no loss scale."""
    compiles = True

    def step(self):
        self.forward()
        if self.work.training:
            self.backward()
            self.update()

    def compile(self):
        """What happens once: here compilation, in a first step."""
        self.step()

    def has_phases(self):
        return True

    def without_dropout(self):
        """Random numbers differ between frameworks. Returns what brings dropout back."""
        return lambda: None

    def set_scale(self, scale):
        pass

    def batch(self, index):
        return self.host[index % len(self.host)]


