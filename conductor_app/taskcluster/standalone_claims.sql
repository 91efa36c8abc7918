-- The claims of standalone tasks. The fragments of `tasks/claims.sql` are inserted too.

-- fragment: claimable_standalone
FROM conductor_attempt a WHERE {is_claimable} AND a.run_id IS NULL
AND NOT EXISTS (SELECT 1 FROM conductor_worker q
    WHERE q.queue = %(queue)s AND q."group" = %(group)s AND q.name = %(name)s AND q.quarantine_until > %(now)s)

-- name: is_any_waiting
-- Ask whether a queue has a claimable attempt for a worker.
-- index: attempt_to_claim
SELECT 1 {claimable_standalone} LIMIT 1

-- name: claim_standalone
-- Claim the next attempts of a queue for a worker. Those that other claims have locked are skipped.
-- index: attempt_to_claim, primary key of conductor_attempt
WITH chosen AS MATERIALIZED (
    SELECT a.id {claimable_standalone}
    {dispatch_order}
    FOR UPDATE OF a SKIP LOCKED -- postgresql
)
{lease_chosen}

-- name: claim_standalone_attempt
-- Claim one attempt.
-- index: primary key of conductor_attempt
WITH chosen AS MATERIALIZED (
    SELECT a.id FROM conductor_attempt a WHERE a.id = %(id)s AND a.visible_at <= %(now)s AND a.ends_at > %(now)s
    FOR UPDATE OF a -- postgresql
)
{lease_chosen}

-- name: load_claimed_standalone
-- Load the tasks of claimed attempts with all their attempts, and the definition with the claimed one.
-- index: primary key of conductor_attempt, primary key of conductor_standalonetask, primary key of conductor_task, one_attempt_per_task_and_number
SELECT s.task_id, {task_columns}, t.status, t.created_at, t.name, FALSE, FALSE, FALSE, {attempt_columns},
    CASE WHEN a.id = c.id THEN s.definition END
FROM conductor_attempt c JOIN conductor_standalonetask s ON s.task_id = c.task_id
JOIN conductor_task t ON t.id = c.task_id JOIN conductor_attempt a ON a.task_id = c.task_id
WHERE c.id IN (%(ids)s) ORDER BY s.task_id, a.number
