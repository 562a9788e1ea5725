"""How a tidy table looks as text, HTML, LaTeX and Markdown: cells, digits, notes, findings. No
metric is known here."""
