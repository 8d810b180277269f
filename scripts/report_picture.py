"""Takes the README's picture from the report of a run: python scripts/report_picture.py RUN

Needs chromium, and pillow to make the file small.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

TARGET = Path(__file__).resolve().parent.parent / "docs" / "images" / "report.png"
WIDTH, TOP, BOTTOM = 1180, 20, 838
"""In pixels: the head of the page, the headline figures and the first row of curves."""
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--hide-scrollbars",
)


def main(run: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        shutil.copy(run / "report.html", page)
        picture = Path(folder) / "report.png"
        subprocess.run(
            [
                *("chromium", *FLAGS, f"--user-data-dir={folder}/profile"),
                *(f"--window-size={WIDTH},{BOTTOM}", f"--screenshot={picture}", page.as_uri()),
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        with Image.open(picture) as shot:
            cropped = shot.convert("RGB").crop((0, TOP, WIDTH, BOTTOM))
    cropped.quantize(128, dither=Image.Dither.NONE).save(TARGET, optimize=True)
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
