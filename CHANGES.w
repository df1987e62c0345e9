- Names do not matter: the hash that scatters a table's rows is drawn from the table's
  contents and its number among equals, not from its name, and groups are told by what
  is in them. Lists that differ in names, or in the order of their lines, cost the same
  to the last digit. A plan has the seed of each table (`row_seed`), so `run`, `cost`
  and `explain` follow; `plan --from` keeps the seeds of tables that keep their rows.
- upgrade: prices and plans of tables cut by rows change by a few percent, as their hot
  rows are in other blocks. Plans from before have no `row_seed`: they keep the hash of
  the name, and their prices. `run --save-samples` numbers samples of such tables anew.
