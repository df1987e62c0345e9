# Skipped if the data set is already multi-hot.
is_multi_hot=no
for arg in "$@"; do
    if [[ $arg == --synthetic_multi_hot_criteo_path* ]]; then
        is_multi_hot=yes
    fi
done
if [[ $is_multi_hot == no ]]; then
    args+=(--multi_hot_sizes "{{hotness}}" --multi_hot_distribution_type uniform)
fi
