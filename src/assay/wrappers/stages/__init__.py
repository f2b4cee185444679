"""The steps of the wrapper pipeline, one file each."""
