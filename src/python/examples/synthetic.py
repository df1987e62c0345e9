# SPDX-License-Identifier: MIT
"""Synthetic clicks. Ids follow a Zipf law and are scattered over the rows. The
label depends on the ids, so there is something to learn. Every rank draws its
own samples, and draws the same ones in each run."""
import torch
from torchrec import KeyedJaggedTensor
from torchrec.datasets.utils import Batch

# Rows, and lookups per sample.
TABLES = {
    "user": (400_000, 1),
    "item": (100_000, 1),
    "seen_items": (100_000, 20),
    "category": (2_000, 3),
    "shop": (20_000, 1),
    "country": (250, 1),
    "hour": (24, 1),
    "query_words": (50_000, 6),
}
N_NUMBERS = 4
PRIME = 1_000_000_007


class Clicks:
    """Endless iterator over batches."""

    def __init__(self, batch_size, rank, seed=0):
        self.batch_size = batch_size
        self.rng = torch.Generator().manual_seed(1009 * seed + rank)

    def __iter__(self):
        while True:
            yield self.batch()

    def batch(self):
        n = self.batch_size
        ids, score = [], torch.zeros(n)
        for n_rows, n_lookups in TABLES.values():
            # Uniform in the logarithm: Zipf's law with exponent 1.
            drawn = torch.rand(n, n_lookups, generator=self.rng)
            rank = (n_rows**drawn).long().clamp(1, n_rows) - 1
            ids.append(rank * PRIME % n_rows)
            score += (rank % 7 - 3).float().mean(1)
        numbers = torch.randn(n, N_NUMBERS, generator=self.rng)
        chance = torch.sigmoid(score / 2 + numbers[:, 0])
        lengths = [torch.full((n,), k) for _, k in TABLES.values()]
        return Batch(
            dense_features=numbers,
            sparse_features=KeyedJaggedTensor(
                keys=list(TABLES),
                values=torch.cat([part.flatten() for part in ids]),
                lengths=torch.cat(lengths).int(),
            ),
            labels=torch.bernoulli(chance, generator=self.rng).int(),
        )
