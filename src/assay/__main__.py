"""`python -m assay`, and the installed command: the terminal and the web room, introduced."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assay.cli.main import main as run

if TYPE_CHECKING:
    import asyncio

    from assay.admin.account_data import AccountExport
    from assay.app import App
    from assay.cli.command import ServedApp


class Web:
    """The web room, imported when a command first serves: `--help` must not wait for it."""

    def build(self, app: "App") -> "tuple[ServedApp, type[asyncio.Protocol]]":
        """The service as an ASGI application, and the server's protocol in front of it."""
        from assay.app.protocol import protocol_for  # noqa: PLC0415
        from assay.app.web import build  # noqa: PLC0415

        application = build(app)
        return application, protocol_for(application)

    def openapi_document(self, app: "App") -> Mapping[str, Any]:
        """The OpenAPI 3.1 document."""
        from assay.app.web import openapi_document  # noqa: PLC0415

        return openapi_document(app)

    def account_export(self, app: "App", found: "AccountExport") -> str:
        """An account's data as JSON text."""
        from assay.admin import schemas_account_data as wire  # noqa: PLC0415

        made = wire.account_export(found, None, app.clock.now())
        return made.model_dump_json(by_alias=True, indent=2)


def main() -> None:
    """Run the command of the arguments and end the process with its status."""
    run(Web())


if __name__ == "__main__":
    main()
