"""What a comparison allows to say: health of an experiment, sample ratio, balance, corrections,
verdicts."""
