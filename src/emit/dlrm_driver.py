import os
import sys

import torch
import torch.distributed as dist

from loader import load_plan

HERE = os.path.dirname(os.path.abspath(__file__))
PLAN = os.path.join(HERE, "plan.json")
OPTIMIZER = "{{optimizer}}"
TABLES = {
{{tables}}}
WIDTH = max(dim for dim, _ in TABLES.values())


class _Planner:
    """Replaces the planner of dlrm_main: returns the sharding plan of the file
    PLAN."""

    def __init__(self, **_):
        pass

    def collective_plan(self, module, *_):
        device_type = "cuda" if torch.cuda.is_available() else "cpu"
        world_size = dist.get_world_size()
        return load_plan(PLAN, module, world_size, device_type)


def planned_config(of):
    """Wraps a configuration class: each table gets the precision of the
    plan."""
    from torchrec.modules.embedding_configs import DataType

    def config(feature_names, **rest):
        _, precision = TABLES[feature_names[0]]
        return of(
            feature_names=feature_names,
            data_type=DataType[precision.upper()],
            **rest,
        )

    return config


def planned_model(of):
    """Wraps a model class: a matrix widens each table that is narrower than
    WIDTH columns to WIDTH, as DLRM does for mixed dimensions
    (dlrm_s_pytorch.py, --md-flag)."""
    from torchrec import EmbeddingBagCollection
    from torchrec.models.dlrm import SparseArch

    class Widened(SparseArch):
        def __init__(self, tables, device):
            super().__init__(tables)
            self.D = WIDTH
            self.widen = torch.nn.ModuleList(
                torch.nn.Identity()
                if dim == WIDTH
                else torch.nn.Linear(dim, WIDTH, bias=False, device=device)
                for dim, _ in (TABLES[f] for f in self.sparse_feature_names)
            )

        def forward(self, features):
            found = self.embedding_bag_collection(features).to_dict()
            vectors = (found[name] for name in self.sparse_feature_names)
            return torch.stack([w(v) for w, v in zip(self.widen, vectors)], 1)

    def model(embedding_bag_collection, dense_device, **rest):
        configs = embedding_bag_collection.embedding_bag_configs()
        made = of(
            embedding_bag_collection=embedding_bag_collection,
            dense_device=dense_device,
            **rest,
        )
        for config in configs:
            config.embedding_dim, _ = TABLES[config.feature_names[0]]
        if any(config.embedding_dim != WIDTH for config in configs):
            meta = torch.device("meta")
            made.sparse_arch = Widened(
                EmbeddingBagCollection(tables=configs, device=meta),
                dense_device,
            )
        return made

    return model


class _Optimizers:
    """Optimizers of the tables. Sharded tables are updated in backward.
    Replicated tables are updated by a dense optimizer with the same rule."""

    def __init__(self, apply, keyed):
        from torchrec import optim
        from torchrec.optim.rowwise_adagrad import RowWiseAdagrad

        self.apply, self.keyed = apply, keyed
        self.fused, self.dense = {
            "sgd": (torch.optim.SGD, torch.optim.SGD),
            "rowwise_adagrad": (optim.RowWiseAdagrad, RowWiseAdagrad),
            "adagrad": (torch.optim.Adagrad, torch.optim.Adagrad),
            "adam": (torch.optim.Adam, torch.optim.Adam),
            "lamb": (optim.LAMB, None),
            "partial_rowwise_adam": (optim.PartialRowWiseAdam, None),
            "partial_rowwise_lamb": (optim.PartialRowWiseLAMB, None),
        }[OPTIMIZER]

    def in_backward(self, _, parameters, arguments):
        self.arguments = dict(arguments)  # copied: TorchRec modifies it
        tables = [weights for weights in parameters if weights.is_meta]
        self.apply(self.fused, tables, arguments)

    def beside(self, parameters, make):
        from torchrec.optim.keyed import CombinedOptimizer

        replicas = {
            name: weights
            for name, weights in parameters.items()
            if ".embedding_bags." in name
        }
        rest = {n: p for n, p in parameters.items() if n not in replicas}
        parts = [self.keyed(rest, make)]
        if replicas:
            parts.append(
                self.keyed(
                    replicas,
                    lambda weights: self.dense(weights, **self.arguments),
                )
            )
        return CombinedOptimizer(parts)


def main():
    from torchrec.datasets import criteo

    # Every module that imports criteo shares this one list.
    criteo.DEFAULT_CAT_NAMES[:] = TABLES
    sys.path.insert(0, os.environ["DLRM_DIR"])
    import dlrm_main

    optimizers = _Optimizers(
        dlrm_main.apply_optimizer_in_backward, dlrm_main.KeyedOptimizerWrapper
    )
    dlrm_main.apply_optimizer_in_backward = optimizers.in_backward
    dlrm_main.KeyedOptimizerWrapper = optimizers.beside
    dlrm_main.EmbeddingShardingPlanner = _Planner
    dlrm_main.EmbeddingBagConfig = planned_config(dlrm_main.EmbeddingBagConfig)
    for name in ("DLRM", "DLRM_DCN", "DLRM_Projection"):
        setattr(dlrm_main, name, planned_model(getattr(dlrm_main, name)))
    dlrm_main.main(sys.argv[1:])


main()
