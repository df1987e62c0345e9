import os
import sys

import torch
import torch.distributed as dist

from loader import load_plan

HERE = os.path.dirname(os.path.abspath(__file__))
PLAN = os.path.join(HERE, "plan.json")
# OPTIMIZER and FEATURES, as the plan has them, stand here.


class _Planner:
    """Takes the place of dlrm_main's planner."""

    def __init__(self, **_):
        pass

    def collective_plan(self, module, *_):
        device_type = "cuda" if torch.cuda.is_available() else "cpu"
        world_size = dist.get_world_size()
        return load_plan(PLAN, module, world_size, device_type)


def main():
    from torchrec.datasets import criteo

    # One list, shared by all who import it.
    criteo.DEFAULT_CAT_NAMES[:] = FEATURES
    sys.path.insert(0, os.environ["DLRM_DIR"])
    import dlrm_main

    apply = dlrm_main.apply_optimizer_in_backward

    def apply_planned(_, parameters, arguments):
        from torchrec import optim

        optimizer = {
            "sgd": torch.optim.SGD,
            "rowwise_adagrad": optim.RowWiseAdagrad,
            "adagrad": torch.optim.Adagrad,
            "adam": torch.optim.Adam,
            "lamb": optim.LAMB,
            "partial_rowwise_adam": optim.PartialRowWiseAdam,
            "partial_rowwise_lamb": optim.PartialRowWiseLAMB,
        }[OPTIMIZER]
        apply(optimizer, parameters, arguments)

    dlrm_main.apply_optimizer_in_backward = apply_planned
    dlrm_main.EmbeddingShardingPlanner = _Planner
    dlrm_main.main(sys.argv[1:])


main()
