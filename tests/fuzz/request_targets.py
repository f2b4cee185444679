"""The head of a request, as our own server reads it.

Empty until `assay.web.request_parser` exists; its targets go here and are fuzzed like the others.
"""

from tests.fuzz.target import Target

TARGETS: tuple[Target, ...] = ()
