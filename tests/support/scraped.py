"""What a scrape of a process of the tests' own says."""

from assay.app import App
from assay.app.metrics import metrics_page


def samples(page: str) -> dict[str, float]:
    """The samples of a page, by name and labels as they are written."""
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


async def scraped(app: App) -> dict[str, float]:
    """The samples, by name and labels as they are written."""
    page = metrics_page(app)
    text = (await page.text()).decode()
    await page.aclose()
    return samples(text)
