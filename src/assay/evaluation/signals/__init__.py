"""One file per trust signal (interface.md#enumerated-values); to add one, add a file here."""
