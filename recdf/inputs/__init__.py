"""What a caller hands over, checked once: frames, ids, options, conventions.

Labels stop here: column names and id values are known to this room alone, and the others see arrays of codes.
"""
