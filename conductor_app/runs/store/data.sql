-- Data that decisions request. `runs/store/data.py` executes these statements. Conditions on the tasks of a run differ
-- by request: that module composes them.

-- fragment: is_valid
c.digest = %(digest)s AND c.name = %(name)s AND c.expires_at > %(now)s

-- name: load_attempt_inputs
-- Load the inputs of attempts.
-- index: primary key of conductor_attempt
SELECT id, input, input_path FROM conductor_attempt WHERE id IN (%(ids)s)

-- name: load_attempt_outputs
-- Load the outputs of attempts.
-- index: primary key of conductor_attempt
SELECT id, output, output_path FROM conductor_attempt WHERE id IN (%(ids)s)

-- name: find_task_output
-- Find the cached output of a task.
-- index: one_result_per_key, primary key of conductor_attempt
SELECT a.output, a.output_path FROM conductor_cachedresult c JOIN conductor_attempt a ON a.id = c.attempt_id
WHERE {is_valid} AND a.status = 'COMPLETED'

-- name: find_run_output
-- Find the cached output of a run.
-- index: one_result_per_key, primary key of conductor_run
SELECT r.id, r.output, r.output_path FROM conductor_cachedresult c JOIN conductor_run r ON r.id = c.run_id
WHERE {is_valid} AND r.status = 'COMPLETED'

-- name: find_child_result
-- Find the result of a child run, and whether the attempt that waits for it exists. A removed child has no name.
-- index: primary key of conductor_run, primary key of conductor_attempt
SELECT r.name, r.version, r.status, r.reason, r.output, r.output_path,
EXISTS (SELECT 1 FROM conductor_attempt a WHERE a.id = %(attempt_id)s)
FROM (SELECT 1) AS one LEFT JOIN conductor_run r ON r.id = %(run_id)s

-- name: find_last_output
-- Find the output of the newest attempt of a run.
-- index: attempt_of_run, primary key of conductor_task
SELECT a.seq, a.output, a.output_path FROM conductor_attempt a JOIN conductor_task t ON t.id = a.task_id
WHERE a.run_id = %(run_id)s ORDER BY a.seq DESC LIMIT 1

-- name: find_active_domains
-- Find the domains of the workers that have polled a queue since a time.
-- index: one_poller_per_type_domain_worker
SELECT DISTINCT domain FROM conductor_poller WHERE task_type = %(task_type)s AND polled_at >= %(since)s

-- name: find_idempotency_holder
-- Find the run that has an idempotency key, and the attempt that waits for it.
-- index: one_run_per_idempotency_key, primary key of conductor_attempt
SELECT r.id, r.status, r.parent_id, a.task_id, a.status
FROM conductor_run r LEFT JOIN conductor_attempt a ON a.id = r.parent_attempt_id
WHERE r.name = %(name)s AND r.idempotency_key = %(key)s
