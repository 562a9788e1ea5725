"""Files of every format as frames, and frames as files of TREC. What a format is stands in
`format_records`."""
