"""Match once: the ranked lists of `pred` beside what is relevant in `true`, as arrays."""
