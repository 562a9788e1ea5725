collect_ignore = ["make_samples.py"]  # it needs the tools whose formats are read
