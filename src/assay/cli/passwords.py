"""Passwords on the terminal."""

import getpass
import sys


def ask_password() -> str:
    """Ask for a new password twice on a terminal; otherwise take the first line of standard input.

    Never an argument: those can be read by every user of the machine.
    """
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass.getpass("Password (12 characters or more): ")
    if getpass.getpass("Once more: ") != first:
        sys.exit("assay: the two passwords differ")
    return first
