"""From two frames to two tidy tables: the call, its result, the summary and the parquet files."""
