- `plan --from` stops at a reached lower bound like a fresh plan does, and near it once cycles gain little; `--move-limit 0` of an unchanged list is answered at once. 26 Criteo tables on 8 GPUs: 0.03 s instead of 3.3 s of CPU time.
- upgrade: `plan --gpus N..M --time-limit S` ends after S seconds in all, with what is known until then; the limit was for each number. The JSON has `unplanned_gpus`. On a terminal the sweep shows its progress.
- A warning that a sweep or a comparison would repeat is said once.
- An option that changes no price under the cost model (`--host-ms` with `--cost torchrec`, `--intra-gbps` beside `torchrec:intra=...`) is named in one warning; so is `--pipeline prefetch`, which costs what `sdd` does as long as no table is cached.
- An interrupt ends `plan`, `compare`, `cost`, `diff`, `emit`, `explain` and `tables` at once as long as they have nothing to keep: while lists and plans are read, set up, priced or reported. `compare` leaves out tasks that were not begun.
- Learned nets: what a piece of a table counts in its GPU's load includes the exchange, which is
  most of the cost of such nets; plans of 50 to 80 tables become cheaper. The full search spends
  its usual effort on them while stages still gain.
- `plan --search reference` places pieces under all caps at once and keeps GPUs in an order instead
  of scanning all for each piece; its plans are the same.
- upgrade: full plans and re-plans by learned nets (`reference:DIR`) change.
- A list column `min_width`: no piece of the table is narrower, in searches and in plans by hand.
- `NeuroShardPlanner` plans for the GPU of the job: `gpu=`, else what `torch.cuda.get_device_name()` says, else an h100 that the log calls assumed; CPU jobs for a CPU. `--gpu` takes the name of a device, as `"NVIDIA H200"`.
- `NeuroShardPlanner` writes one line for each plan: cost model, GPU, step, TorchRec's own planner beside it, and what changes training.
- `min_partition` of constraints is the least width of the table's pieces. Pooling factors, poolings and batch sizes of the wrong number, unknown columns in `usage` and names that are most likely misspelt are refused; other unknown names are told in the log. `usage` takes `group`, `device`, `row_overhead_bytes`, rows of features and lists of rows. The sharder's `use_index_dedup` is read.
- `--cost torchrec:backward=F`: TorchRec's `bwd_compute_multiplier`, which `NeuroShardPlanner(cost="torchrec")` takes from the topology; on a CPU it takes `ddr_mem_bw`. Bandwidths in other units than TorchRec's are refused.
- A plan of `NeuroShardPlanner` keeps the precision of the cache that FBGEMM needs for bf16 tables.
- On one rank `NeuroShardPlanner` plans every sharding type. `NeuroShardPlanLoader` gives a `NeuroShardPlanner` plans with pieces of any width.
- Errors of the Python package name no temporary file and no line of standard input, but the table or option.
- upgrade: jobs on GPUs other than an H100 get plans for their own GPU; tables with `min_partition` get wider pieces.
- drift: a change of a GPU whose times hardly vary (below half a percent) is seen.
- comm: exchanges without bytes or time do not count among the three others that a judgement of a line needs.
