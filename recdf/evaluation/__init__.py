"""Two frames to two tidy tables: the call, its result, the summary and parquet files."""
