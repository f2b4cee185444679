"""The metadata object that contains every table."""

from sqlalchemy import MetaData

METADATA = MetaData()
