-- Runs with their tasks. `runs/store/loading.py` executes these statements.

-- fragment: run_and_payloads
SELECT {run_columns}, r.has_skips,
CASE WHEN r.input_size <= {small_payload_chars} AND r.input_path = '' THEN r.input END,
CASE WHEN r.variables_size <= {small_payload_chars} THEN r.variables END

-- fragment: neighborhood
{run_and_payloads}, seen.revision, {task_and_attempt}
FROM conductor_attempt given JOIN conductor_task t ON t.id = given.task_id
JOIN conductor_attempt a ON a.id = t.attempt_id
JOIN conductor_run r ON r.id = given.run_id JOIN conductor_run seen ON seen.id = given.run_id

-- name: load_run
-- Load a run.
-- index: primary key of conductor_run
{run_and_payloads} FROM conductor_run r WHERE r.id = %(run_id)s

-- name: lock_run
-- Load a run, locked until the transaction ends.
-- index: primary key of conductor_run
{run_and_payloads} FROM conductor_run r WHERE r.id = %(run_id)s
FOR UPDATE OF r -- postgresql

-- name: load_neighborhood
-- Load the run and the tasks of attempts. `r` is the run as it is after the wait for a lock, `seen` as it was before.
-- index: primary key of conductor_attempt, primary key of conductor_task, primary key of conductor_run
{neighborhood}
WHERE given.id IN (%(attempt_ids)s) AND given.run_id = %(run_id)s

-- name: lock_neighborhood
-- As `load_neighborhood`, and lock the run until the transaction ends.
-- index: primary key of conductor_attempt, primary key of conductor_task, primary key of conductor_run
{neighborhood}
WHERE given.id IN (%(attempt_ids)s) AND given.run_id = %(run_id)s
FOR UPDATE OF r -- postgresql

-- name: lock_available_neighborhood
-- As `lock_neighborhood` for one attempt. Returns nothing if another transaction has locked the run.
-- index: primary key of conductor_attempt, primary key of conductor_task, primary key of conductor_run
{neighborhood}
WHERE given.id = %(attempt_id)s AND given.run_id = %(run_id)s
FOR UPDATE OF r SKIP LOCKED -- postgresql

-- name: load_tasks
-- Load the tasks of a run, each with its current attempt. Callers that need some of the tasks add conditions.
-- index: one_task_per_run_ref_and_iteration_path, primary key of conductor_attempt
SELECT {task_and_attempt} FROM conductor_task t JOIN conductor_attempt a ON a.id = t.attempt_id
WHERE t.run_id = %(run_id)s

-- name: set_timer
-- Set the timer of a run.
-- index: primary key of conductor_run
UPDATE conductor_run SET wake_at = %(wake_at)s WHERE id = %(run_id)s
