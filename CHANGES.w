- Learned nets: what a piece of a table counts in its GPU's load includes the exchange, which is
  most of the cost of such nets; plans of 50 to 80 tables become cheaper. The full search spends
  its usual effort on them while stages still gain.
- `plan --search reference` places pieces under all caps at once and keeps GPUs in an order instead
  of scanning all for each piece; its plans are the same.
- upgrade: full plans and re-plans by learned nets (`reference:DIR`) change.
