"""The report in a real browser: it fits, it filters, it runs nothing foreign."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from deliberation.report.page import render_report
from deliberation.run import Run
from deliberation.store import RunStore
from tests.helpers.episodes import disagreeing, make_episode, turn
from tests.helpers.reports import CONFIG, attack, play

PROBE = """<!doctype html><body><script>
addEventListener("load", () => {
  const frame = document.querySelector("iframe"), page = frame.contentDocument;
  const form = page.querySelector(".filters");
  const shown = () => page.querySelectorAll(".dialogue:not([hidden])").length;
  const found = {
    overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
    injected: String(frame.contentWindow.injected),
    filters: !form.hidden,
    all: shown(),
    styled: frame.contentWindow.getComputedStyle(page.body).display,
  };
  const set = (name, value) => {
    form.reset();
    form.elements[name].value = value;
    form.dispatchEvent(new Event("input", {bubbles: true}));
    return shown();
  };
  found.step = set("step", "2");
  found.end = set("end", "no_agreement");
  found.text = set("text", "  NOT HERE ");
  found.none = set("text", "no such words");
  found.said = page.querySelector(".nothing-found").hidden ? "" : "none fits";
  set("text", "");
  form.elements.open.click();
  found.opened = page.querySelectorAll(".dialogue[open]").length;
  for (const details of page.querySelectorAll("details")) details.open = true;
  found.wide = page.documentElement.scrollWidth - page.documentElement.clientWidth;
  document.body.innerHTML = "<pre>" + JSON.stringify(found) + "</pre>";
});
</script><iframe style="border:0;width:WIDTHpx;height:900px" srcdoc="PAGE"></iframe>"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
@pytest.mark.parametrize("width", [375, 1280])
def test_in_a_browser_the_page_filters_fits_its_width_and_runs_nothing_foreign(tmp_path, width):
    attacked = RunStore.create(tmp_path / "demo", yaml.safe_dump(CONFIG))
    attack(attacked)
    long = "Donaudampfschifffahrtsgesellschaft" * 12
    play(attacked, 2, [make_episode(2, turns=[turn(0, long)]), disagreeing(2, episode=1)])
    html = render_report(Run(attacked.dir))
    quoted = html.replace("&", "&amp;").replace('"', "&quot;")
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE.replace("WIDTH", str(width)).replace("PAGE", quoted), encoding="utf-8")
    found = browse(probe, tmp_path / "profile")
    assert found == {
        "overflow": 0,
        "injected": "undefined",
        "filters": True,
        "all": 3,
        "styled": "block",
        "step": 2,
        "end": 1,
        "text": 1,
        "none": 0,
        "said": "none fits",
        "opened": 3,
        "wide": 0,
    }


def browse(page: Path, profile: Path) -> dict:
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync"
    done = subprocess.run(
        [
            "chromium",
            *flags.split(),
            "--disable-background-networking",
            "--disable-component-update",
            f"--user-data-dir={profile}",
            "--window-size=1400,1000",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return yaml.safe_load(re.search(r"<pre>(.*?)</pre>", done.stdout, re.DOTALL)[1])
