"""Every parser of bytes from outside, by name."""

from tests.fuzz import (
    chain_targets,
    grpc_targets,
    guard_targets,
    http_targets,
    identity_targets,
    payment_targets,
    reply_targets,
    request_targets,
)

TARGETS = {
    target.name: target
    for group in (
        *(payment_targets, chain_targets, identity_targets, http_targets, request_targets),
        *(reply_targets, grpc_targets, guard_targets),
    )
    for target in group.TARGETS
}
