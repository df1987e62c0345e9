- `make bench` shows whether allowing more makes plans worse (`bench_more`): all
  kinds beside every subset of them, and 12 sizes of memory, on shipped lists.
- By TorchRec's formulas, lists of up to 600 tables are searched with the same
  effort as by other cost models (about a second), until the bound is near, and
  what a change does to all GPUs counts ten times as much: plans under tight
  memory cost up to 2 % less.
- upgrade: plans by `--cost torchrec` change and rarely cost more; those of short
  lists take up to a second instead of 0.3.
