"""One file per trust signal (interface.md#enumerated-values); a new signal is a new file here."""
