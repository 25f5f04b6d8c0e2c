"""The README's first command does what the README says, and its transcript is real."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.samples import ROOT


@pytest.mark.slow
def test_the_demo_ingests_asks_and_prints_the_readmes_transcript(tmp_path: Path) -> None:
    environment = {**os.environ, "BYTHEBOOK_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    demo = ["sh", "demo.sh", "--no-serve"]
    first = subprocess.run(
        demo, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=600
    )
    readme = (ROOT / "README.md").read_text("utf-8")
    transcript, *_ = re.findall(r"```console\n(.*?)```", readme, re.DOTALL)
    shown = {line.strip() for line in first.stdout.splitlines()}
    for line in transcript.splitlines():
        assert line.strip() in shown, f"not in the demo's output: {line}"
    second = subprocess.run(
        demo, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=600
    )
    assert "0 embedded" in second.stdout
    assert second.stderr == ""


def test_the_demo_names_its_options() -> None:
    done = subprocess.run(
        ["sh", "demo.sh", "--nonsense"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--no-serve" in done.stderr
