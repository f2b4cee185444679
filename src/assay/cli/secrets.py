"""`assay secrets`: the secrets that are generated and kept in the data directory."""

import sys

from assay.app.secrets import SecretName, rotate_secret
from assay.cli.command import MISCONFIGURED, complain, read_settings
from assay.settings import SettingsError


def rotate(name: SecretName, *, compromised: bool) -> int:
    """Change a secret and say what is to be done then; the secret itself is never printed."""
    settings = read_settings({})
    try:
        said = rotate_secret(settings, name, compromised=compromised)
    except (SettingsError, RuntimeError) as error:
        complain(str(error))
        return MISCONFIGURED
    sys.stdout.write(f"The {name} secret is changed. {said}\n")
    return 0
