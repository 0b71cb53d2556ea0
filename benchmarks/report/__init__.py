"""How an answer is shown: terminal, Markdown, HTML. Nothing here computes a time."""
