"""The rollout, unrolled over the horizon so that nothing is computed twice."""

from dataclasses import dataclass, field
from typing import Any, cast

from torch import Tensor, nn

from export.graph import Graph
from export.networks import emit, emit_actions
from models import WorldModel
from models.markov import Markov
from models.predictor import Attention, Block, Predictor


@dataclass
class Window:
    """What later tokens of one window need of earlier ones: keys and values `(B, heads * head_dim)` of each block."""

    start: int
    seen: list[list[tuple[str, str]]] = field(default_factory=list)


class Rollout:
    """Writes rollouts of one world model into a graph.

    A token is one latent at one position of the predictor's window with the action block that leaves it. Every token is
    a matrix `(B, width)` of its own: B is N for tokens that depend on a candidate, C for those of the context alone,
    and broadcasting joins the two. While the window grows, its tokens keep their positions and so their keys and
    values; once it slides, positions change and the whole window is new. The action encoder runs once.
    """

    def __init__(self, model: WorldModel, graph: Graph, context: str, past_actions: str, actions: str, horizon: int):
        self.model = model
        self.graph = graph
        self.horizon = horizon
        self.predictor = cast(Predictor, model.predictor)
        self.blocks = cast(list[Block], list(self.predictor.blocks))
        self.context = [self._pick(context, index) for index in range(model.history)]
        self.query, self.key, self.value = zip(
            *(_query_key_value(block.attention) for block in self.blocks), strict=True
        )
        self.past = self._modulations(past_actions, model.history - 1)
        self.future = self._modulations(actions, horizon)

    def latents(self, context_length: int) -> list[str]:
        """The H latents, each `(N, 1, D)`, that follow the last `context_length` latents of the context."""
        graph, history = self.graph, self.model.history
        latents = self.context[history - context_length :]
        modulations = self.past[history - context_length :] + self.future
        window = Window(0)
        for end in range(context_length, context_length + self.horizon):
            start = max(0, end - history)
            if start != window.start:
                window = Window(start)
            hidden = None
            for index in range(start + len(window.seen), end):
                hidden = self._token(latents[index], modulations[index], window, read=index == end - 1)
            assert hidden is not None
            following = emit(self.model.pred_proj, graph, emit(self.predictor.norm, graph, hidden))
            if self.model.residual:
                following = graph.op("Add", latents[-1], following)
            latents = [*latents, following]
        column = graph.indices(0, 1, self.model.latent)
        return [graph.op("Reshape", latent, column) for latent in latents[context_length:]]

    def _token(self, latent: str, modulations: list[list[str]], window: Window, read: bool) -> str | None:
        """Run one more token of `window` through the predictor; if it is not read, only as far as its last key."""
        graph, position = self.graph, len(window.seen)
        x = graph.op("Add", latent, graph.weight(self.predictor.position[:, position]))
        x = emit(self.predictor.input, graph, x)
        own: list[tuple[str, str]] = []
        window.seen.append(own)
        for depth, block in enumerate(self.blocks):
            shift1, scale1, gate1, shift2, scale2, gate2 = modulations[depth]
            y = emit(block.attention.norm, graph, self._modulate(block.norm1, x, scale1, shift1))
            own.append((self._project(y, self.key[depth]), self._project(y, self.value[depth])))
            if depth == len(self.blocks) - 1 and not read:
                return None
            attended = self._attend(y, depth, [token[depth] for token in window.seen])
            x = graph.op("Add", x, graph.op("Mul", gate1, emit(block.attention.out, graph, attended)))
            y = emit(block.mlp, graph, self._modulate(block.norm2, x, scale2, shift2))
            x = graph.op("Add", x, graph.op("Mul", gate2, y))
        return x

    def _attend(self, y: str, depth: int, seen: list[tuple[str, str]]) -> str:
        """What the newest token reads: a softmax over a handful of keys, each in a matrix of its own.

        The first token of a window sees itself alone, whatever its query.
        """
        if len(seen) == 1:
            return seen[0][1]
        graph, size = self.graph, len(self.query[depth])
        count = self.blocks[depth].attention.heads
        heads = graph.indices(0, count, size // count)
        q = self._project(y, self.query[depth])
        scores = [
            graph.op("ReduceSum", graph.op("Reshape", graph.op("Mul", q, key), heads), graph.indices(2), keepdims=1)
            for key, _ in seen
        ]
        weights = graph.op("Softmax", graph.op("Concat", *scores, axis=2), axis=2)
        parts = graph.ops("Split", weights, outputs=len(seen), axis=2, num_outputs=len(seen))
        terms = [graph.op("Mul", w, graph.op("Reshape", v, heads)) for w, (_, v) in zip(parts, seen, strict=True)]
        total = terms[0]
        for term in terms[1:]:
            total = graph.op("Add", total, term)
        return graph.op("Reshape", total, graph.indices(0, size))

    def _project(self, x: str, weight: Tensor) -> str:
        return self.graph.op("Gemm", x, self.graph.weight(weight), transB=1)

    def _modulate(self, norm: nn.Module, x: str, scale: str, shift: str) -> str:
        return self.graph.op("Add", self.graph.op("Mul", emit(norm, self.graph, x), scale), shift)

    def _modulations(self, blocks: str, count: int) -> list[list[list[str]]]:
        """Shifts, scales and gates of every predictor block for each of `count` action blocks `(B, count, k*A)`."""
        if count == 0:
            return []
        graph, first = self.graph, self.blocks[0].modulation
        embedded = emit(first[0], graph, emit_actions(self.model, graph, blocks))
        embedded = graph.op("Reshape", embedded, graph.indices(-1, count, len(self.predictor.norm.weight)))
        return [
            [self._modulation(block, self._pick(embedded, index)) for block in self.blocks] for index in range(count)
        ]

    def _modulation(self, block: Block, embedded: str) -> list[str]:
        linear = cast(nn.Linear, block.modulation[1])
        bias = linear.bias.detach().clone().view(6, -1)
        bias[[1, 4]] += 1  # the scales multiply as 1 + scale
        weights = self.graph.weight(linear.weight), self.graph.weight(bias.flatten())
        all_six = self.graph.op("Gemm", embedded, *weights, transB=1)
        return self.graph.ops("Split", all_six, outputs=6, axis=1, num_outputs=6)

    def _pick(self, sequence: str, index: int) -> str:
        """The matrix `(B, W)` of one step of a sequence `(B, T, W)`."""
        return self.graph.op("Gather", sequence, self.graph.index(index), axis=1)


class MarkovRollout:
    """Writes rollouts of a world model with a plain predictor, as one product for each of the steps that it sees.

    A step of the context is a matrix of C rows, a predicted one of N, and sums broadcast where joined rows would not.
    """

    def __init__(self, model: WorldModel, graph: Graph, context: str, past_actions: str, actions: str, horizon: int):
        self.model = model
        self.graph = graph
        self.horizon = horizon
        self.predictor = cast(Markov, model.predictor)
        history = model.history
        self.context = [self._pick(context, index) for index in range(history)]
        self.by_lag = self.predictor.latent.weight.detach().chunk(history, dim=1)
        self.past = self._pushes(past_actions, history - 1)
        self.future = self._pushes(actions, horizon)

    def latents(self, context_length: int) -> list[str]:
        """The H latents, each `(N, 1, D)`, that follow the last `context_length` latents of the context."""
        graph, history = self.graph, self.model.history
        latents = self.context[history - context_length :]
        pushes = self.past[history - context_length :] + self.future
        for end in range(context_length, context_length + self.horizon):
            newest, bias = latents[-1], graph.weight(self.predictor.latent.bias)
            hidden = graph.op("Gemm", newest, graph.weight(self.by_lag[0]), bias, transB=1)
            for lag in range(1, history):  # before the first latent seen everything stood still
                before = graph.op("Gemm", latents[max(end - 1 - lag, 0)], graph.weight(self.by_lag[lag]), transB=1)
                hidden = graph.op("Add", hidden, before)
            for lag in range(min(end, history)):
                hidden = graph.op("Add", hidden, pushes[end - 1 - lag][lag])
            change = emit(self.model.pred_proj, graph, emit(self.predictor.body, graph, hidden))
            latents = [*latents, graph.op("Add", newest, change) if self.model.residual else change]
        column = graph.indices(0, 1, self.model.latent)
        return [graph.op("Reshape", latent, column) for latent in latents[context_length:]]

    def _pushes(self, blocks: str, count: int) -> list[list[str]]:
        """What each of `count` action blocks `(B, count, k*A)` adds, `(B, width)`, when it is 0, 1, ... steps old."""
        if count == 0:
            return []
        graph, parts = self.graph, self.predictor.action.weight.detach().chunk(self.model.history, dim=1)
        scaled, shape = emit_actions(self.model, graph, blocks), graph.indices(-1, count, len(parts[0]))
        aged = [graph.op("Reshape", graph.op("Gemm", scaled, graph.weight(w), transB=1), shape) for w in parts]
        return [[self._pick(pushes, index) for pushes in aged] for index in range(count)]

    def _pick(self, sequence: str, index: int) -> str:
        """The matrix `(B, W)` of one step of a sequence `(B, T, W)`."""
        return self.graph.op("Gather", sequence, self.graph.index(index), axis=1)


def write(model: WorldModel, *where: Any) -> Rollout | MarkovRollout:
    """Rollouts of `model`, by the kind of its predictor; `where` is as for `Rollout`."""
    return (MarkovRollout if isinstance(model.predictor, Markov) else Rollout)(model, *where)


def _query_key_value(attention: Attention) -> tuple[Tensor, Tensor, Tensor]:
    """The three projections `(heads * head_dim, width)`, the query's with the attention's scale in it."""
    query, key, value = attention.qkv.weight.detach().chunk(3)
    return query * (len(query) // attention.heads) ** -0.5, key, value
