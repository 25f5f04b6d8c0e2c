"""The network: a BERT encoder with four heads (answers, support, span, relevance)."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

WIDTH, LAYERS, ATTENTION_HEADS, INNER, VOCABULARY = 384, 6, 12, 1536, 30522


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.o = nn.Linear(WIDTH, WIDTH)
        self.ln1 = nn.LayerNorm(WIDTH, eps=1e-12)
        self.f1 = nn.Linear(WIDTH, INNER)
        self.f2 = nn.Linear(INNER, WIDTH)
        self.ln2 = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        rows, length, _ = x.shape
        split = self.qkv(x).view(rows, length, 3, ATTENTION_HEADS, WIDTH // ATTENTION_HEADS)
        # Attention is faster in float32 than in bfloat16 on a CPU, above all its backward pass.
        with torch.autocast("cpu", enabled=False):
            query, key, value = split.permute(2, 0, 3, 1, 4).float()
            attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = self.ln1(x + self.o(attended.transpose(1, 2).reshape(rows, length, WIDTH)))
        return self.ln2(x + self.f2(functional.gelu(self.f1(x))))


class Encoder(nn.Module):
    def __init__(self, layers: int = LAYERS) -> None:
        super().__init__()
        self.w = nn.Embedding(VOCABULARY, WIDTH)
        self.pos = nn.Embedding(512, WIDTH)
        self.t = nn.Embedding(2, WIDTH)
        self.ln = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def embed(self, ids: Tensor, segments: Tensor) -> Tensor:
        positions = torch.arange(ids.shape[1], device=ids.device)
        embedded: Tensor = self.ln(self.w(ids) + self.pos(positions)[None] + self.t(segments))
        return embedded

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor) -> Tensor:
        x = self.embed(ids, segments)
        attend = mask[:, None, None, :].bool()
        for layer in self.layers:
            x = layer(x, attend)
        return x


class ReaderNetwork(nn.Module):
    """Returns the logit of "answers", three logits of support, and for each token three logits.

    The support classes are: entailed, neutral, contradicted. Of a token: whether the span begins
    and ends with it, and whether its sentence belongs in the answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.b = Encoder()
        self.pool = nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.GELU())
        self.ans = nn.Linear(WIDTH, 1)
        self.nli = nn.Linear(WIDTH, 3)
        self.span = nn.Linear(WIDTH, 2)
        self.rel = nn.Linear(WIDTH, 1)

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        x = self.b(ids, segments, mask)
        mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        pooled = self.pool(torch.cat([x[:, 0], mean], -1))
        return self.ans(pooled)[:, 0], self.nli(pooled), self.span(x), self.rel(x)[..., 0]


def load_weights(network: nn.Module, path: Path) -> None:
    """Load a checkpoint: this program's own (.pt) or a file of safetensors."""
    state = (
        load_file(path) if path.suffix == ".safetensors" else torch.load(path, weights_only=True)
    )
    found = {name: tensor.float() for name, tensor in state.get("network", state).items()}
    for name, tensor in network.state_dict().items():
        if name.startswith("rel."):  # reader-v1 has no relevance head
            found.setdefault(name, tensor)
    network.load_state_dict(found)


def load_minilm(network: ReaderNetwork, path: Path) -> None:
    """Load the encoder from a sentence-transformers file of all-MiniLM-L6-v2."""
    found = load_file(path)

    def tensor(name: str) -> Tensor:
        return found.get(name, found.get(f"bert.{name}"))  # type: ignore[return-value]

    encoder = network.b
    with torch.no_grad():
        for module, name in (
            (encoder.w, "word"),
            (encoder.pos, "position"),
            (encoder.t, "token_type"),
        ):
            module.weight.copy_(tensor(f"embeddings.{name}_embeddings.weight"))
        for kind in ("weight", "bias"):
            getattr(encoder.ln, kind).copy_(tensor(f"embeddings.LayerNorm.{kind}"))
        for number, layer in enumerate(encoder.layers):
            before = f"encoder.layer.{number}."
            for kind in ("weight", "bias"):
                joined = [
                    tensor(f"{before}attention.self.{part}.{kind}")
                    for part in ("query", "key", "value")
                ]
                getattr(layer.qkv, kind).copy_(torch.cat(joined))
                for module, name in (
                    (layer.o, "attention.output.dense"),
                    (layer.ln1, "attention.output.LayerNorm"),
                    (layer.f1, "intermediate.dense"),
                    (layer.f2, "output.dense"),
                    (layer.ln2, "output.LayerNorm"),
                ):
                    getattr(module, kind).copy_(tensor(f"{before}{name}.{kind}"))
