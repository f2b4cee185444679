"""What a scrape of a process of the tests' own says."""

from assay.app import App
from assay.app.metrics import metrics_page


async def scraped(app: App) -> dict[str, float]:
    """The samples, by name and labels as they are written."""
    page = metrics_page(app)
    lines = (await page.text()).decode().splitlines()
    await page.aclose()
    found = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in found}
