- `bench --alltoall` takes `--min-bytes` and `--max-bytes`, the sizes of the exchanges.
- Exchanges over MPI begin with another rank each, so that no port is busy while the others wait: between four hosts an even load no longer takes 5/3 of the time.
- Across hosts, the ranks of a CPU host share its network adapter: the bytes of the host, not those of its busiest rank, decide what an exchange takes. Models learn which of the two holds from measured exchanges; the cost database (schema 5) stores the bytes of the busiest host.
- `make bench-wire` measures, predicts and executes over links of a known rate, made of network namespaces.
- upgrade: plans for `--gpu cpu` on several hosts of several ranks have cheaper exchanges if the ranks of a host send different numbers of bytes.
- upgrade: the cost database has schema 5; databases of schemas 1 to 4 are read and upgraded as before. `db` prints another content hash for the same samples.
- `train --kind monotone`: a net whose price never falls if a table is added or if
  weights get wider, and for which a table without lookups is free. All shipped
  models are of this kind. On ranks of plans of table lists that no training
  sample is from, the mean error is about 3 % (before: 11.5 %), and the interval
  holds nearly all of them (before: 60 %).
- `h100.nsm` has also learned from the 240 measured ranks of plans.
- Intervals have a class for devices most of whose tables have less than one
  lookup a bag ("sparse bags"), as ranks of tables that are cut by rows have.
  "look-ups a bag" is a range that `outside` checks.
- Rooflines of an H100, an H200 and a CPU have an error for each class of
  devices (`class_error_frac` in GPU files).
- `run --db` stores the ranks of a plan under a seed of their own, so the time of
  each plan can be found again.
- A plan prints the error of its lookups even if the error of the exchanges is
  unknown.
- upgrade: prices by the shipped models change by a few percent; the check of ids
  is not counted for tables without lookups; models are written in format 4.
- GPU files hold the rates of matrix products by type: `fp32_tflops`,
  `tf32_tflops`, `fp16_tflops` and `bf16_tflops`, from data sheets, for all
  shipped GPUs (neuroshard-gpu(5)).
- An all-reduce across hosts uses the network adapters of all GPUs of a host, as
  NCCL's rings do, and has the latency of published all-reduces.
- upgrade: replicas across hosts cost less than before: their all-reduce takes an
  eighth of the transfer time on hosts of eight GPUs. Plans for several hosts may
  have more replicas.
- `--dense SPEC` of `plan`, `cost`, `explain` and `compare` describes the dense
  part of the model: a named model (`dcnv2`, `dlrm`, `synthetic-tiny` to `-jumbo`)
  or its layers. Its forward, backward, optimizer update and the all-reduce of its
  gradients are predicted, and its weights, masters, gradients, optimizer state
  and activations count in each GPU's memory. Plans keep it. `--dense-ms` takes
  the place of the predicted time.
- `make bench` has a table `dense`: published matrix products, and 40 published
  steps of models whose layers are known.
- upgrade: plans may have the members `step.dense`, `step.dense_bytes`,
  `step.dense_cost` and
  `memory_bytes.dense`; plans without a dense part are as before.
- `emit --format dlrm` passes the layers of the plan's dense part to DLRM, and
  `tables import` reads them from DLRM's command lines: a comment has the text for
  `--dense`.
