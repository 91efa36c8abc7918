-- Trees of runs. `runs/store/loading.py` executes these statements. The database uses a partial index only if the
-- statement repeats its condition.

-- fragment: task_is_open
t.status IN ('ACTIVE', 'BLOCKED')

-- name: load_run_status
-- Load the status of a run, and its parent.
-- index: primary key of conductor_run
SELECT status, parent_id FROM conductor_run WHERE id = %(run_id)s

-- name: find_open_waits
-- Find the open WAIT and YIELD tasks of runs, and the open tasks that wait for a child.
-- index: task_open, primary key of conductor_attempt
SELECT t.run_id, t.type, a.id, a.child_id, a.ends_at FROM conductor_task t JOIN conductor_attempt a ON a.id = t.attempt_id
WHERE t.run_id IN (%(run_ids)s) AND {task_is_open}
AND (t.type IN ('WAIT', 'YIELD') OR a.child_id <> '') AND a.status = 'LEASED' ORDER BY t.run_id, t.seq

-- name: find_ended_tasks
-- Find the ended tasks of runs with these references, in each iteration.
-- index: one_task_per_run_ref_and_iteration_path
SELECT t.run_id, t.attempt_id, t.ref, t.iteration_path FROM conductor_task t
WHERE t.run_id IN (%(run_ids)s) AND t.ref IN (%(refs)s) AND NOT {task_is_open} ORDER BY t.run_id, t.seq

-- name: mark_watched
-- Mark runs as watched until a time. A run keeps an unexpired topic.
-- index: primary key of conductor_run
UPDATE conductor_run SET watched_as = CASE WHEN watched_until > %(now)s THEN watched_as ELSE %(name)s END,
watched_until = CASE WHEN watched_until > %(until)s THEN watched_until ELSE %(until)s END
WHERE id IN (%(run_ids)s) RETURNING watched_as

-- name: find_termination
-- Ask whether one of these runs has a message to terminate.
-- index: message_to_terminate
SELECT 1 FROM conductor_message WHERE subject = 'terminate' AND "to" IN (%(run_ids)s) LIMIT 1

-- name: count_open_descendants
-- Count the open runs below a run, up to a limit.
-- index: open_run_by_root
SELECT COUNT(*) FROM (SELECT 1 FROM conductor_run
    WHERE root_id = %(root_id)s AND status IN ('PAUSED', 'RUNNING') AND NOT (root_id = '') LIMIT %(limit)s) AS found
