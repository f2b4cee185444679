"""The schema's history: one file a step in `versions`, never edited once released."""
