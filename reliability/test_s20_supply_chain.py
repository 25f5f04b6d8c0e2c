"""What runs is locked, and needs no network to import, ingest or answer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.server.running_server import PROGRAM, free_port
from tests.support.samples import ROOT, small_book

from reliability.rows import Rows

pytestmark = pytest.mark.real

# Inside a network of its own that has nothing but loopback: a name server is out of reach, too.
_CUT = r"""
ip link set lo up
set -eu
"$1" ingest "$2" --home "$3" --json >"$3/ingested"
"$1" serve --home "$3" --port "$4" 2>"$3/log" &
server=$!
trap 'kill $server' EXIT
"$5" - "$4" <<'END'
import json, sys, time, urllib.request
url = f"http://127.0.0.1:{sys.argv[1]}"
def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=20).read()
for _ in range(600):
    try:
        ask("/ready")
        break
    except OSError:
        time.sleep(0.1)
print(ask("/query", {"text": "At how many degrees does a kettle boil water?"}).decode())
def unroutable():  # packets and connections that were wanted and had nowhere to go
    names, numbers = (line.split() for line in open("/proc/net/snmp") if line.startswith("Ip:"))
    return int(dict(zip(names, numbers))["OutNoRoutes"])
time.sleep(3)  # who wants to call home in the background has had time
before = unroutable()
try:
    urllib.request.urlopen("http://192.0.2.1/", timeout=5)
    print("the network is not cut")
except OSError as error:
    told = {"outside": str(error), "wanted": before, "counted": unroutable() > before}
    print(json.dumps(told))
END
"""
_LOCKS = ("run.txt", "dev.txt")


def _unlocked(lock: Path) -> list[str]:
    """Return requirements without an exact version or a hash."""
    text = lock.read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [
        line[:60] for line in lines if not re.match(r"[a-z0-9._-]+(\[[a-z,]+\])?==\S+ ", line)
        or not re.search(r"--hash=sha256:[0-9a-f]{64}", line)
    ]  # fmt: skip


def test_it_serves_with_the_network_cut(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "S20",
        "Packages or models fetched at run time",
        requirement=(
            "imports, ingests and answers without a network, and requests nothing from "
            "it; every requirement has a hash"
        ),
    )
    loose = [line for name in _LOCKS for line in _unlocked(ROOT / "requirements" / name)]
    locked = sum((ROOT / "requirements" / name).read_text().count("==") for name in _LOCKS)
    book, home = small_book(tmp_path / "docs"), tmp_path / "home"
    home.mkdir()
    arguments = [PROGRAM, str(book), str(home), str(free_port())]
    command = ["unshare", "--map-root-user", "--net", "sh", "-c", _CUT, "sh", *arguments]
    cache = tmp_path / "cache"
    done = subprocess.run(
        [*command, sys.executable],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "unshare" in done.stderr and "not permitted" in done.stderr:
        pytest.skip("this machine lets nobody have a network of their own")
    assert done.returncode == 0, done.stderr
    ingested = json.loads((home / "ingested").read_text())
    answer, outside = map(json.loads, done.stdout.splitlines())
    left = [file for file in cache.rglob("*") if file.is_file() and "bythebook" not in file.parts]
    row.record(
        f"{locked} locked requirements looked at; {ingested['chunks_created']} passages ingested "
        "and a question answered over HTTP in a network namespace that has loopback alone",
        f"{len(loose)} without version and hash; outside: {outside['outside']}; "
        f"{outside['wanted']} connections elsewhere tried, {len(left)} files left in the cache by "
        f"libraries; answered: {not answer['is_refusal']}",
        passed=not loose
        and not left
        and outside["wanted"] == 0
        and outside["counted"]
        and not answer["is_refusal"]
        and "unreachable" in outside["outside"],
    )
