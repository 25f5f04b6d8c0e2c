"""Train the reading model on a CPU.

    python -m training.train --prepared DIR --tokenizer tokenizer.json --out DIR --steps 6000
        (--init model.safetensors | --start reader.safetensors) [--labelled BOOK.jsonl.gz …]

The learning rate rises for 100 steps and then falls linearly to zero at the last one. A
checkpoint with everything needed to go on is written every few minutes; the same command then
goes on where it stopped. The batch of a step depends only on the seed and the step's number.

With labelled books the relevance head is trained too: most steps then read whole passages.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from training.labelled import Labelled, Marks
from training.metrics import auroc
from training.model import ReaderNetwork, load_minilm, load_weights

MOST_TOKENS = 224
BATCH_TOKENS = 3072
MOST_ROWS = 64
WARM_UP = 100
LABELS = {"entail": 0, "neutral": 1, "contradict": 2, "unsupported": 3}
# Share of the steps that each group of examples gets.
SHARES = {
    "twins": 0.28,
    "retrieved": 0.08,
    "other": 0.02,
    "written": 0.16,
    "twin statements": 0.08,
    "statements": 0.04,
    "edits": 0.05,
    "edited": 0.06,
    "passages": 0.05,
    "sentences": 0.03,
    "written claims": 0.15,
}
# With labelled books; the groups of claims share the rest in the proportions above.
LABELLED_SHARES = {"labelled": 0.68, "paragraphs": 0.20}
CLAIMS = (
    "twin statements",
    "statements",
    "edits",
    "edited",
    "passages",
    "sentences",
    "written claims",
)
Row = dict[str, Any]
Encoded = tuple[list[int], list[int], Any]  # ids, segments, label(s)


def shares_of(*, labelled: bool) -> dict[str, float]:
    """Return the share of the steps that each group of examples gets."""
    if not labelled:
        return SHARES
    left = (1 - sum(LABELLED_SHARES.values())) / sum(SHARES[group] for group in CLAIMS)
    return {**LABELLED_SHARES, **{group: left * SHARES[group] for group in CLAIMS}}


class Data:
    """Examples by group, in an order that depends only on the seed."""

    def __init__(
        self, folder: Path, tokenizer: Tokenizer, seed: int, labelled: Sequence[Path] = ()
    ) -> None:
        self._tokenizer, self._seed = tokenizer, seed
        self._shares = shares_of(labelled=bool(labelled))
        self._whole: dict[str, Callable[[int], Sequence[Encoded]]] = {}
        self.rows: defaultdict[str, list[Row]] = defaultdict(list)
        for name in ("support.jsonl",) if labelled else ("pairs.jsonl", "support.jsonl"):
            with (folder / name).open(encoding="utf-8") as lines:
                for line in lines:
                    row = json.loads(line)
                    self.rows[row["group"]].append(row)
        for group, rows in sorted(self.rows.items()):
            random.Random(f"{seed} {group}").shuffle(rows)
        self._streams = {group: self._batches(group) for group in self.rows}
        if labelled:
            books = Labelled(labelled, folder / "paragraphs.jsonl", tokenizer, seed, BATCH_TOKENS)
            self.rows.update(labelled=books.questions, paragraphs=books.paragraphs)
            self._whole = {"labelled": books.passages, "paragraphs": books.pairs}

    def group_of(self, step: int) -> str:
        chance = random.Random(f"{self._seed} {step}")
        return chance.choices(list(self._shares), list(self._shares.values()))[0]

    def batch(self, group: str, step: int) -> Sequence[Encoded]:
        return self._whole[group](step) if group in self._whole else next(self._streams[group])

    def skip_to(self, step: int) -> None:
        for group, count in Counter(map(self.group_of, range(step))).items():
            for _ in range(count if group in self._streams else 0):
                next(self._streams[group])

    def _batches(self, group: str) -> Iterator[list[Encoded]]:
        """Yield batches of similar length, each with a bounded number of tokens."""
        rows, chance, start, size = (
            self.rows[group],
            random.Random(f"{self._seed} {group}"),
            0,
            1024,
        )
        while True:
            chunk = [rows[i % len(rows)] for i in range(start, start + size)]
            start += size
            units = self.encode(chunk)
            units.sort(key=lambda unit: max(len(ids) for ids, *_ in unit))
            batches: list[list[Encoded]] = [[]]
            for unit in units:
                longest = max(len(ids) for ids, *_ in unit)
                count = len(batches[-1]) + len(unit)
                if batches[-1] and (count * longest > BATCH_TOKENS or count > MOST_ROWS):
                    batches.append([])
                batches[-1].extend(unit)
            chance.shuffle(batches)
            yield from batches

    def encode(self, rows: Sequence[Row]) -> list[list[Encoded]]:
        if "claim" in rows[0]:
            encoded = self._tokenizer.encode_batch([(row["claim"], row["premise"]) for row in rows])
            return [
                [(e.ids[:MOST_TOKENS], e.type_ids[:MOST_TOKENS], LABELS[row["label"]])]
                for row, e in zip(rows, encoded, strict=True)
            ]
        both = [reading for row in rows for reading in (row["bad"], row["good"])]
        encoded = self._tokenizer.encode_batch([(r["question"], r["passage"]) for r in both])
        readings = [encode_reading(e, r) for e, r in zip(encoded, both, strict=True)]
        return [readings[i : i + 2] for i in range(0, len(readings), 2)]


def encode_reading(encoding: Any, reading: Row) -> Encoded:
    """Return ids, segments and (answers, first token, last token); -1 for an unknown span."""
    first = last = 0 if not reading["answers"] else -1
    if "span" in reading:
        start, end = reading["span"]
        inside = [
            i
            for i, ((a, b), segment) in enumerate(
                zip(encoding.offsets, encoding.type_ids, strict=True)
            )
            if segment == 1 and b > a and b > start and a < end and i < MOST_TOKENS
        ]
        if inside:
            first, last = inside[0], inside[-1]
    return (
        encoding.ids[:MOST_TOKENS],
        encoding.type_ids[:MOST_TOKENS],
        (reading["answers"], first, last),
    )


def pad(batch: Sequence[Encoded]) -> tuple[Tensor, Tensor, Tensor]:
    length = max(len(ids) for ids, *_ in batch)
    ids = torch.zeros(len(batch), length, dtype=torch.long)
    segments, mask = torch.zeros_like(ids), torch.zeros(len(batch), length)
    for i, (row, kinds, _) in enumerate(batch):
        ids[i, : len(row)] = torch.tensor(row)
        segments[i, : len(row)] = torch.tensor(kinds)
        mask[i, : len(row)] = 1
    return ids, segments, mask


def loss_of(network: nn.Module, batch: Sequence[Encoded]) -> Tensor:
    ids, segments, mask = pad(batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        answers, support, span, relevance = network(ids, segments, mask)
    labels = [label for *_, label in batch]
    if isinstance(labels[0], int):
        return loss_of_support(support.float(), labels)
    span = span.float().masked_fill(mask[..., None] == 0, -1e4)
    if isinstance(labels[0], Marks):
        return loss_of_marks(answers.float(), span, relevance.float(), labels)
    right = torch.tensor([float(label[0]) for label in labels])
    loss = functional.binary_cross_entropy_with_logits(answers.float(), right)
    loss = loss + ranking_loss(answers.float())
    return loss + 0.25 * loss_of_span(span, [label[1:] for label in labels])


def loss_of_support(support: Tensor, labels: Sequence[int]) -> Tensor:
    log_odds = support.log_softmax(-1)
    unsupported = torch.logsumexp(log_odds[:, 1:], 1, keepdim=True)  # neutral or contradicted
    return functional.nll_loss(torch.cat([log_odds, unsupported], 1), torch.tensor(labels))


def ranking_loss(answers: Tensor) -> Tensor:
    return 0.5 * functional.softplus(answers[0::2] - answers[1::2]).mean()


def loss_of_span(span: Tensor, ends: Sequence[tuple[int, int]]) -> Tensor:
    """Return the loss of first and last token together; -1 is unknown."""
    loss = span.new_zeros(())
    for side in (0, 1):
        target = torch.tensor([each[side] for each in ends])
        if (target >= 0).any():
            loss = loss + functional.cross_entropy(span[..., side], target, ignore_index=-1)
    return loss


def loss_of_marks(
    answers: Tensor, span: Tensor, relevance: Tensor, marks: Sequence[Marks]
) -> Tensor:
    """Return the loss of whole passages; paragraphs, which have spans, come in pairs."""
    right = torch.tensor([float(each.answers) for each in marks])
    weight = torch.tensor([each.weight for each in marks])
    loss = functional.binary_cross_entropy_with_logits(answers, right, reduction="none")
    loss = (loss * weight).mean()
    ends = [each.span for each in marks if each.span is not None]
    if not ends:
        return loss + loss_of_units(relevance, marks)
    loss = loss + ranking_loss(answers) + 0.2 * loss_of_span(span, ends)
    return loss + 0.5 * loss_of_units(relevance, marks)


def loss_of_units(relevance: Tensor, marks: Sequence[Marks]) -> Tensor:
    """Return the mean loss of the readings: of each unit, the mean of its tokens' logits."""
    losses = []
    for logits, each in zip(relevance, marks, strict=True):
        units = torch.tensor(each.units)
        inside = units >= 0
        if not inside.any():
            continue
        counts = units[inside].bincount()
        sums = logits.new_zeros(len(counts)).index_add(
            0, units[inside], logits[: len(units)][inside]
        )
        seen = counts > 0
        wanted = torch.tensor([each.target(unit) for unit in seen.nonzero()[:, 0].tolist()])
        loss = functional.binary_cross_entropy_with_logits(
            sums[seen] / counts[seen], wanted[:, 0], reduction="none"
        )
        losses.append((loss * wanted[:, 1]).mean())
    return torch.stack(losses).mean() if losses else relevance.new_zeros(())


def rate(step: int, steps: int, peak: float) -> float:
    return peak * min((step + 1) / WARM_UP, (steps - step) / steps)


@torch.no_grad()
def validate(network: ReaderNetwork, tokenizer: Tokenizer, rows: Sequence[Row]) -> dict[str, float]:
    """Return the AUROC of each kind of held-out rows: questions of two kinds, and claims."""
    network.eval()
    encoded = tokenizer.encode_batch(
        [
            (row.get("question") or row["claim"], row.get("passage") or row["premise"])
            for row in rows
        ]
    )
    order = sorted(range(len(rows)), key=lambda i: len(encoded[i].ids))
    answers, support = torch.zeros(len(rows)), torch.zeros(len(rows))
    for start in range(0, len(order), 32):
        some = order[start : start + 32]
        batch = [(encoded[i].ids[:256], encoded[i].type_ids[:256], None) for i in some]
        answers[some], classes, *_ = network(*pad(batch))
        support[some] = classes[:, 0] - torch.logsumexp(classes[:, 1:], 1)
    network.train()
    figures = {}
    for kind in sorted({row["kind"] for row in rows}):
        own = [i for i, row in enumerate(rows) if row["kind"] == kind]
        scores = support if kind == "claims" else answers
        right = [rows[i].get("answers", rows[i].get("label") == "entail") for i in own]
        figures[kind] = auroc(scores[own].tolist(), right)
    return figures


def held_out_rows(folder: Path) -> list[Row]:
    held_out = [json.loads(line) for line in (folder / "heldout.jsonl").open(encoding="utf-8")]
    squad = [row for row in held_out if row["kind"] == "squad"]
    held_out = [row for row in held_out if row["kind"] != "squad"]
    return held_out + random.Random(1).sample(squad, min(1000, len(squad)))


def network_of(minilm: Path | None, reader: Path | None) -> ReaderNetwork:
    network = ReaderNetwork()
    if minilm:
        load_minilm(network, minilm)
    if reader:
        load_weights(network, reader)
    return network


def optimizer_of(network: ReaderNetwork, peak: float) -> torch.optim.AdamW:
    matrices = [p for p in network.parameters() if p.dim() > 1]
    vectors = [p for p in network.parameters() if p.dim() <= 1]
    return torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}],
        lr=peak,
        fused=True,
    )


def options_of_command() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prepared", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--init", type=Path, help="MiniLM's model.safetensors")
    parser.add_argument("--start", type=Path, help="weights of an earlier reading model")
    parser.add_argument(
        "--labelled", type=Path, nargs="+", default=[], metavar="FILE", help="labelled books"
    )
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=5, help="between two checkpoints")
    return parser.parse_args()


def main() -> None:
    options = options_of_command()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    data = Data(options.prepared, tokenizer, options.seed, options.labelled)
    held_out = held_out_rows(options.prepared)
    network = network_of(options.init, options.start)
    optimizer = optimizer_of(network, options.rate)
    checkpoint, first = options.out / "checkpoint.pt", 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
        data.skip_to(first)
    print({group: len(rows) for group, rows in data.rows.items()}, "from step", first, flush=True)

    def keep(step: int) -> None:
        state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, checkpoint.with_suffix(".new"))
        checkpoint.with_suffix(".new").replace(checkpoint)
        figures = validate(network, tokenizer, held_out)
        shown = ", ".join(f"{kind} {figure:.4f}" for kind, figure in figures.items())
        print(f"step {step}: checkpoint, AUROC {shown}", flush=True)

    began = kept = time.monotonic()
    losses: dict[str, float] = {}
    tokens = examples = 0
    network.train()
    for step in range(first, options.steps):
        for parameters in optimizer.param_groups:
            parameters["lr"] = rate(step, options.steps, options.rate)
        group = data.group_of(step)
        batch = data.batch(group, step)
        loss = loss_of(network, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        losses[group] = 0.95 * losses.get(group, loss.item()) + 0.05 * loss.item()
        tokens += sum(len(ids) for ids, *_ in batch)
        examples += len(batch)
        if (step + 1) % 100 == 0:
            seconds = time.monotonic() - began
            left = seconds / (step + 1 - first) * (options.steps - step - 1) / 60
            shown = " ".join(f"{name} {value:.3f}" for name, value in sorted(losses.items()))
            print(
                f"step {step + 1}/{options.steps}, {examples} examples, "
                f"{tokens / seconds:.0f} tokens/s, {left:.0f} min left; {shown}",
                flush=True,
            )
        if time.monotonic() - kept > options.minutes * 60:
            keep(step + 1)
            kept = time.monotonic()
    keep(options.steps)


if __name__ == "__main__":
    main()
