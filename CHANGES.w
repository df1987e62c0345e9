- `plan --search reference` places pieces under all caps at once and keeps GPUs in an order instead
  of scanning all for each piece; its plans are the same.
