"""User models, and what is judged: `recdf.metrics.user_models` and `recdf.metrics.judgements`."""

from registry.union.frames import plainly

ADAPTERS = {
    "bpref": plainly("bpref"),
}

NOT_YET = {
    "infap", "iprecision", "judged", "list_length", "rbp", "rbp_residual", "relevant_count", "sufficient", "unrepeated",
    "user_model", "utility",
}  # fmt: skip
