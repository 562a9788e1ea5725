"""The catalogue, log, features, aspects and baseline of a call, as codes."""
