-- The claims of attempts. `tasks/store.py` executes them, and `db/statements.py` has the format.
-- {gates} is the condition of the gates that `tasks/gates.py` declares.

-- fragment: is_claimable
-- The attempt passes the gates without a limit, and the worker is not drained.
a.queue = %(queue)s AND a.status = 'PENDING' AND NOT (a.queue = '') AND {gates}
AND NOT EXISTS (SELECT 1 FROM conductor_workerhold w WHERE w.worker = %(worker)s)

-- fragment: belongs_to_run
-- A queue of standalone tasks may have the name of a task type. The workers of one must not get attempts of the other.
a.run_id IS NOT NULL

-- fragment: dispatch_order
ORDER BY a.priority DESC, a.visible_at, a.id LIMIT %(count)s

-- fragment: lease
UPDATE conductor_attempt SET status = 'LEASED', worker = %(worker)s, poll_count = poll_count + 1, callback_ms = 0,
claimed_at = %(now)s, updated_at = %(now)s, started_at = COALESCE(started_at, %(now)s),
lease_ends_at = CASE WHEN lease_ms > 0 THEN %(now)s + lease_ms END,
due_at = (SELECT MIN(column1) FROM (VALUES (CASE WHEN lease_ms > 0 THEN %(now)s + lease_ms END),
    (CASE WHEN timeout_ms > 0 THEN COALESCE(started_at, %(now)s) + delay_ms + timeout_ms END),
    (total_ends_at)) AS clocks)

-- fragment: lease_chosen
{lease}
WHERE id IN (SELECT id FROM chosen) AND status = 'PENDING'
RETURNING -priority, visible_at, id

-- fragment: candidates
SELECT a.id, a.name, COALESCE(d.concurrent_limit, a.concurrent_limit), COALESCE(d.rate_count, a.rate_count),
    COALESCE(d.rate_seconds, a.rate_seconds), a.publishes_start, a.priority, a.fairness_key, a.fairness_weight
FROM conductor_attempt a LEFT JOIN conductor_taskdefinition d ON d.name = a.name
WHERE {is_claimable} AND {belongs_to_run}

-- name: find_candidates
-- Find the due attempts of a queue in dispatch order, with their limits.
-- index: attempt_to_claim
{candidates}
{dispatch_order}

-- name: find_candidates_except
-- As `find_candidates`, without the names whose limits are reached.
-- index: attempt_to_claim
{candidates} AND a.name NOT IN (%(full)s)
{dispatch_order}

-- name: lock_candidates
-- As `find_candidates`, and lock the attempts. Those that other claims have locked are skipped.
-- index: attempt_to_claim
{candidates}
{dispatch_order}
FOR UPDATE OF a SKIP LOCKED -- postgresql

-- name: lock_candidates_except
-- As `lock_candidates`, without the names whose limits are reached.
-- index: attempt_to_claim
{candidates} AND a.name NOT IN (%(full)s)
{dispatch_order}
FOR UPDATE OF a SKIP LOCKED -- postgresql

-- name: claim_and_load
-- Claim the next attempts of a queue on PostgreSQL, and load them with their tasks and runs. A row without an attempt is
-- a candidate that was not claimed: one of the candidates has a limit or a fairness key, or its start is published.
-- index: attempt_to_claim, primary key of conductor_attempt, primary key of conductor_task, primary key of conductor_run
WITH candidates AS MATERIALIZED (
    SELECT a.id, a.fairness_key <> '' AS has_key,
        NOT (a.publishes_start OR a.fairness_key <> '' OR COALESCE(d.concurrent_limit, a.concurrent_limit) > 0
        OR (COALESCE(d.rate_count, a.rate_count) > 0
            AND COALESCE(d.rate_seconds, a.rate_seconds) > 0)) AS is_plain
    FROM conductor_attempt a LEFT JOIN conductor_taskdefinition d ON d.name = a.name
    WHERE {is_claimable} AND {belongs_to_run}
    {dispatch_order} FOR UPDATE OF a SKIP LOCKED),
a AS (
    -- The planner expects ten elements of an array, but a tenth of the queue of a subquery: it would read whole tables.
    {lease}
    WHERE id = ANY(ARRAY(SELECT id FROM candidates)) AND status = 'PENDING'
    AND NOT EXISTS (SELECT 1 FROM candidates WHERE NOT is_plain)
    RETURNING {attempt_columns}, priority, visible_at)
SELECT {claimed_columns}, c.has_key
FROM candidates c LEFT JOIN (a
    JOIN conductor_task t ON t.id = a.task_id JOIN conductor_run r ON r.id = a.run_id) ON a.id = c.id
ORDER BY a.priority DESC, a.visible_at, a.id

-- name: claim_plain
-- Claim the next attempts of these names without a fairness key whose starts are not published, on SQLite.
-- index: attempt_to_claim, primary key of conductor_attempt
-- MATERIALIZED: the subquery is evaluated once, so the limit holds for the whole statement.
WITH chosen AS MATERIALIZED (
    SELECT a.id FROM conductor_attempt a WHERE {is_claimable} AND {belongs_to_run}
    AND a.name IN (%(names)s) AND NOT a.publishes_start AND a.fairness_key = ''
    {dispatch_order})
{lease_chosen}

-- name: claim_locked
-- Claim candidates that the transaction has locked.
-- index: primary key of conductor_attempt
WITH chosen AS MATERIALIZED (SELECT a.id FROM conductor_attempt a WHERE a.id IN (%(ids)s))
{lease_chosen}

-- name: store_rate_limit
-- Give an attempt the rate limit of its task definition, which got it after the run had started.
-- index: primary key of conductor_attempt
UPDATE conductor_attempt SET rate_count = %(rate_count)s, rate_seconds = %(rate_seconds)s
WHERE id = %(id)s AND rate_count = 0

-- name: find_published_starts
-- Find those of the claimed attempts whose start is published: at their first claim.
-- index: primary key of conductor_attempt
SELECT id, run_id FROM conductor_attempt WHERE id IN (%(ids)s) AND publishes_start AND poll_count = 1 ORDER BY id

-- name: load_claimed
-- Load claimed attempts with their tasks and runs.
-- index: primary key of conductor_attempt, primary key of conductor_task, primary key of conductor_run
SELECT {claimed_columns}
FROM conductor_attempt a JOIN conductor_task t ON t.id = a.task_id JOIN conductor_run r ON r.id = a.run_id
WHERE a.id IN (%(ids)s)

-- name: find_next_visible
-- Find when the next pending attempt of each of these queues becomes visible. Reads the first attempt of each priority
-- from the index, so that the length of a queue does not matter.
-- index: attempt_to_claim
WITH RECURSIVE p(queue, priority) AS (
    SELECT q.queue, (SELECT MAX(a.priority) {pending} q.queue)
    FROM (SELECT value AS queue FROM json_each(%(queues)s)) q -- sqlite
    -- The planner expects ten elements of an array, but a hundred of JSON, whose costs would start the JIT compiler.
    FROM (SELECT UNNEST(ARRAY(SELECT json_array_elements_text(%(queues)s::json))) AS queue) q -- postgresql
    UNION ALL SELECT p.queue, (SELECT MAX(a.priority) {pending} p.queue AND a.priority < p.priority)
    FROM p WHERE p.priority IS NOT NULL)
SELECT p.queue, MIN((SELECT MIN(a.visible_at) {pending} p.queue AND a.priority = p.priority))
FROM p WHERE p.priority IS NOT NULL GROUP BY p.queue

-- fragment: pending
FROM conductor_attempt a WHERE a.status = 'PENDING' AND NOT (a.queue = '') AND a.queue =

-- name: find_claimable_standalone
-- Find attempts of standalone tasks that pass the gates.
-- index: attempt_to_claim
SELECT a.id FROM conductor_attempt a WHERE {is_claimable} AND a.run_id IS NULL LIMIT %(count)s
