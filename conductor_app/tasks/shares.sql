-- The turns of fairness keys. `tasks/shares.py` executes these statements, each for one queue and one priority.
-- {gates} is the condition of the gates that `tasks/gates.py` declares.

-- fragment: keyed
FROM conductor_attempt a WHERE a.status = 'PENDING' AND NOT (a.queue = '') AND NOT (a.fairness_key = '')
AND a.queue = %(queue)s AND a.priority = %(priority)s

-- fragment: shares
FROM conductor_fairshare s WHERE s.queue = %(queue)s AND s.priority = %(priority)s

-- fragment: keys
-- Reads the first entry of each key from the index, so that the number of attempts does not matter.
WITH RECURSIVE keys(key) AS (
    SELECT MIN(a.fairness_key) {keyed}
    UNION ALL SELECT (SELECT MIN(a.fairness_key) {keyed} AND a.fairness_key > k.key)
    FROM keys k WHERE k.key IS NOT NULL)

-- name: add_keys
-- Add the keys that have due attempts and no turn yet. Their turn is the next one.
-- index: attempt_by_fairness_key, one_share_per_queue_priority_key
{keys}
INSERT INTO conductor_fairshare (queue, priority, key, place, served_at)
SELECT %(queue)s, %(priority)s, k.key, (SELECT COALESCE(MIN(s.place), 0) {shares}), 0
FROM keys k WHERE k.key IS NOT NULL
AND EXISTS (SELECT 1 {keyed} AND a.fairness_key = k.key AND a.visible_at <= %(now)s)
AND NOT EXISTS (SELECT 1 {shares} AND s.key = k.key)

-- name: count_shares
-- Count the keys that have a turn.
-- index: one_share_per_queue_priority_key
SELECT COUNT(*) {shares}

-- name: first_shares
-- Find the keys whose turns come first.
-- index: share_by_place
SELECT s.place, s.served_at, s.key {shares} ORDER BY s.place, s.served_at LIMIT %(count)s

-- fragment: of_key
-- PostgreSQL plans for any key. With the range and the order, no index serves but that of the keys.
a.fairness_key = %(key)s -- sqlite
a.fairness_key >= %(key)s AND a.fairness_key <= %(key)s -- postgresql

-- fragment: in_order
ORDER BY a.fairness_key, a.visible_at, a.id

-- fragment: attempts_of_key
SELECT a.id, a.name, COALESCE(d.concurrent_limit, a.concurrent_limit), COALESCE(d.rate_count, a.rate_count),
    COALESCE(d.rate_seconds, a.rate_seconds), a.publishes_start, a.priority, a.fairness_key, a.fairness_weight,
    a.visible_at
FROM conductor_attempt a LEFT JOIN conductor_taskdefinition d ON d.name = a.name
WHERE a.queue = %(queue)s AND a.priority = %(priority)s AND {of_key}
AND a.status = 'PENDING' AND NOT (a.queue = '') AND NOT (a.fairness_key = '') AND {gates}
AND a.run_id IS NOT NULL AND (a.visible_at, a.id) > (%(after_at)s, %(after_id)s)

-- name: lock_attempts_of_key
-- Find the due attempts of a key after one of them, and lock them. Those that others have locked are skipped.
-- index: attempt_by_fairness_key
{attempts_of_key}
{in_order} LIMIT %(count)s
FOR UPDATE OF a SKIP LOCKED -- postgresql

-- name: lock_attempts_of_key_except
-- As `lock_attempts_of_key`, without the names whose limits are reached.
-- index: attempt_by_fairness_key
{attempts_of_key} AND a.name NOT IN (%(full)s)
{in_order} LIMIT %(count)s
FOR UPDATE OF a SKIP LOCKED -- postgresql

-- name: find_due_attempt_of_key
-- Find out whether a key has a due attempt, locked or not.
-- index: attempt_by_fairness_key
SELECT 1 {keyed} AND {of_key} AND a.visible_at <= %(now)s {in_order} LIMIT 1

-- name: remove_shares
-- Remove keys without due attempts.
-- index: one_share_per_queue_priority_key
DELETE FROM conductor_fairshare
WHERE queue = %(queue)s AND priority = %(priority)s AND key IN (%(keys)s)

-- name: charge_share
-- Move the turn of a key back by the cost of the tasks that were claimed.
-- index: one_share_per_queue_priority_key
UPDATE conductor_fairshare SET place = place + %(cost)s, served_at = %(now)s
WHERE queue = %(queue)s AND priority = %(priority)s AND key = %(key)s

-- name: remove_idle_shares
-- Remove the turns of keys that no claim has served for long. Keys with due attempts get a new turn.
-- index: none: the table has a row for each key
DELETE FROM conductor_fairshare WHERE id IN (
    SELECT id FROM conductor_fairshare WHERE served_at < %(before)s LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED -- postgresql
)

-- fragment: of_listed_key
a.fairness_key = k.key -- sqlite
a.fairness_key >= k.key AND a.fairness_key <= k.key -- postgresql

-- name: list_shares
-- Find the keys of a queue and a priority with the number of their due attempts, up to a limit, their first weight and
-- their turn, null for keys without one.
-- index: attempt_by_fairness_key, one_share_per_queue_priority_key
{keys}
SELECT k.key,
    (SELECT COUNT(*) FROM (SELECT 1 {keyed} AND {of_listed_key} AND a.visible_at <= %(now)s {in_order}
        LIMIT %(limit)s) counted),
    (SELECT a.fairness_weight {keyed} AND {of_listed_key} {in_order} LIMIT 1),
    (SELECT s.place {shares} AND s.key = k.key), (SELECT s.served_at {shares} AND s.key = k.key)
FROM keys k WHERE k.key IS NOT NULL LIMIT %(most)s
