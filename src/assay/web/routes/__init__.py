"""One file per section of the interface specification."""
