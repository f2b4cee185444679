"""The stages of the wrapper pipeline, one file each."""
