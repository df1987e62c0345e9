# SPDX-License-Identifier: MIT
"""An unsharded DLRM for comparison with sharded ones. It is trained with the
batches of all ranks. Its tables are updated by the rules for TorchRec in
neuroshard-emit(1)."""
from ranks import EPSILON


def table_of(parameter_name):
    """Name of the table; '' for a weight of the dense part."""
    parts = parameter_name.split(".")
    return parts[-2] if "embedding_bags" in parts else ""


class Unsharded:
    """train     -- the DLRMTrain
    entries   -- {table: its entry in the plan's JSON}
    optimizer -- "sgd" or "rowwise_adagrad", for tables
    dense     -- makes the optimizer of the dense part
    are_dense -- whether the dense optimizer updates replicas
    """

    def __init__(
        self,
        train,
        entries,
        rate,
        dense,
        optimizer="rowwise_adagrad",
        epsilon=EPSILON,
        are_dense=True,
    ):
        self.train, self.entries = train, entries
        self.rate, self.epsilon = rate, epsilon
        self.optimizer, self.are_dense = optimizer, are_dense
        self.moments = {}
        self.tables, rest = {}, []
        for name, weights in train.named_parameters():
            table = table_of(name)
            if table and self._pieces(table, weights):
                self.tables[table] = weights
            else:
                rest.append(weights)
        self.dense = dense(rest)

    def _pieces(self, table, weights):
        """First column and width of each shard."""
        shards = self.entries[table].get("shards")
        if shards is None:
            return () if self.are_dense else ((0, weights.shape[1]),)
        return sorted(
            {(s["shard_offsets"][1], s["shard_sizes"][1]) for s in shards}
        )

    def step(self, batches):
        """Trains on one batch per rank. Returns the mean loss."""
        self.train.zero_grad()
        loss = sum(self.train(batch)[0] for batch in batches) / len(batches)
        loss.backward()
        self.dense.step()
        for table, weights in self.tables.items():
            for begin, width in self._pieces(table, weights):
                self._update(table, weights, begin, begin + width)
        return loss.item()

    def _update(self, table, weights, begin, end):
        grad = weights.grad[:, begin:end]
        step = self.rate
        if self.optimizer == "rowwise_adagrad":
            moment = self.moments.get((table, begin), 0) + (grad**2).mean(1)
            self.moments[table, begin] = moment
            step = (self.rate / (moment.sqrt() + self.epsilon))[:, None]
        weights.data[:, begin:end] -= step * grad
