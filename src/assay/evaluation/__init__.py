"""From what visits saw to a verdict: checks, history, drift, the ladder and its policy."""
