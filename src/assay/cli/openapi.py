"""`assay openapi`: the interface as an OpenAPI 3.1 document."""

import json
import sys
import tempfile
from pathlib import Path

from assay.app import App
from assay.app.web import openapi_document
from assay.cli.command import with_app


def openapi() -> int:
    """Print the document. Uses an empty data directory of its own: nothing is read or left."""

    async def work(app: App) -> int:
        sys.stdout.write(json.dumps(openapi_document(app), indent=2, ensure_ascii=False) + "\n")
        return 0

    with tempfile.TemporaryDirectory() as folder:
        return with_app(work, {"data_dir": Path(folder), "database_url": None})
