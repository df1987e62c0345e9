-- SPDX-License-Identifier: MIT
-- Summarizes a database as JSON. A machine is a group of settings that differ
-- only in batch, precision and optimizer. The member 'text' of a machine holds
-- the lines of its report. A line that is null is not printed.

SELECT json_object(
    'samples', (SELECT count(*) FROM sample),
    'disturbed', (SELECT count(*) FROM sample WHERE flags & 1),
    'exchanges', (SELECT count(*) FROM comm_sample),
    'ceilings', (SELECT count(*) FROM ceiling),
    'products', (SELECT count(*) FROM product),
    'canaries', (SELECT count(*) FROM canary),
    'replaced',
    (SELECT count(*) FROM training_log WHERE verdict = 'replaced'),
    'kept', (SELECT count(*) FROM training_log WHERE verdict = 'kept'),
    'machines', (SELECT json_group_array(json(machine)) FROM (
        SELECT json_object(
            'device', device, 'threads', n_threads, 'isa', isa,
            'driver', driver, 'cuda', cuda, 'host', host,
            'settings', count(*),
            'min_batch', min(batch), 'max_batch', max(batch),
            'precisions', group_concat(DISTINCT precision),
            'optimizers', group_concat(DISTINCT optimizer),
            'samples', coalesce(sum(n), 0),
            'disturbed', coalesce(sum(n_disturbed), 0),
            'first', min(first), 'last', max(last),
            'exchanges', coalesce(sum(n_exchanges), 0),
            'text', json_array(
                device || ', ' || isa ||
                    iif(n_threads, ', ' || n_threads || ' threads', ''),
                'system     ' || nullif(substr(
                    iif(driver = '', '', ', driver ' || driver) ||
                    iif(cuda = '', '', ', CUDA ' || cuda) ||
                    iif(host = '', '', ', host ' || host), 3), ''),
                'settings   ' || count(*) || ': batch ' || min(batch) ||
                    ' to ' || max(batch) || ', ' ||
                    group_concat(DISTINCT precision) || ', ' ||
                    group_concat(DISTINCT optimizer),
                'samples    ' || coalesce(sum(n), 0) || ', ' ||
                    coalesce(sum(n_disturbed), 0) || ' of them disturbed',
                'measured   ' || min(first) || ' to ' || max(last),
                'exchanges  ' || coalesce(sum(n_exchanges), 0))) AS machine
        FROM setting
        LEFT JOIN (
            SELECT setting_id AS s, count(*) AS n,
                sum(flags & 1) AS n_disturbed,
                min(started_at) AS first, max(started_at) AS last
            FROM sample GROUP BY s) ON s = id
        LEFT JOIN (
            SELECT setting_id AS c, count(*) AS n_exchanges
            FROM comm_sample GROUP BY c) ON c = id
        GROUP BY device, n_threads, isa, driver, cuda, host ORDER BY min(id))));
