"""Pages: plain files, served as they are."""
