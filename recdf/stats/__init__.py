"""Arrays in, numbers out: moments, intervals, resampling, corrections. No column and no metric is
known here."""
