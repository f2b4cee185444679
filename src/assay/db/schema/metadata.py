"""The one collection every table is in."""

from sqlalchemy import MetaData

METADATA = MetaData()
