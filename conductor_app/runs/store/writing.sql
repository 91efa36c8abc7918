-- What decisions write besides rows of runs, tasks and attempts. `runs/store/writing.py` executes these statements.

-- fragment: logs_of_attempts
DELETE FROM conductor_tasklog WHERE attempt_id IN (SELECT id FROM conductor_attempt WHERE

-- name: delete_logs_of_tasks
-- Delete the logs of deleted tasks.
-- index: log_of_attempt, one_attempt_per_task_and_number
{logs_of_attempts} task_id IN (%(task_ids)s))

-- name: delete_attempts_of_tasks
-- Delete the attempts of deleted tasks.
-- index: one_attempt_per_task_and_number
DELETE FROM conductor_attempt WHERE task_id IN (%(task_ids)s)

-- name: delete_tasks
-- Delete tasks.
-- index: primary key of conductor_task
DELETE FROM conductor_task WHERE id IN (%(task_ids)s)

-- name: delete_logs_after
-- Delete the logs of the attempts of a task after an attempt.
-- index: log_of_attempt, one_attempt_per_task_and_number
{logs_of_attempts} task_id = %(task_id)s AND number > %(number)s)

-- name: delete_attempts_from
-- Delete an attempt of a task and the attempts after it.
-- index: one_attempt_per_task_and_number
DELETE FROM conductor_attempt WHERE task_id = %(task_id)s AND number >= %(number)s

-- name: set_attempt_input
-- Set the input of a later attempt of a step that the engine executes itself: it is known when the attempt starts.
-- index: primary key of conductor_attempt
UPDATE conductor_attempt SET input = %(input)s, input_size = %(size)s, input_path = %(path)s WHERE id = %(id)s

-- name: set_attempt_queue
-- Set the queue and the priority of an attempt.
-- index: primary key of conductor_attempt
UPDATE conductor_attempt SET queue = %(queue)s, domain = %(domain)s, priority = %(priority)s WHERE id = %(id)s

-- name: set_attempt_share
-- Set the fairness key and the weight of an attempt that was written before its task had them.
-- index: primary key of conductor_attempt
UPDATE conductor_attempt SET fairness_key = %(key)s, fairness_weight = %(weight)s WHERE id = %(id)s

-- name: set_task_step
-- Set what a task stores of its step, after the definition of its run has changed.
-- index: primary key of conductor_task
UPDATE conductor_task SET joined_by = %(joined_by)s, loop_ref = %(loop_ref)s, is_permissive = %(is_permissive)s
WHERE id = %(id)s

-- fragment: is_in_iteration
-- The task belongs to an iteration of a loop, or to a loop inside of it.
run_id = %(run_id)s AND (iteration_path = %(iteration_path)s OR iteration_path LIKE %(deeper_paths)s)
AND loop_ref IN (%(loop_refs)s)

-- name: delete_attempts_of_iteration
-- Delete the attempts of an iteration.
-- index: one_attempt_per_task_and_number, one_task_per_run_ref_and_iteration_path
DELETE FROM conductor_attempt WHERE task_id IN (SELECT id FROM conductor_task WHERE {is_in_iteration})

-- name: delete_tasks_of_iteration
-- Delete the tasks of an iteration.
-- index: one_task_per_run_ref_and_iteration_path
DELETE FROM conductor_task WHERE {is_in_iteration}

-- name: delete_inbox
-- Delete all messages in the inbox of a run.
-- index: inbox_of_run
DELETE FROM conductor_inboxmessage WHERE run_id = %(run_id)s

-- name: delete_taken_messages
-- Delete the messages in the inbox of a run that its tasks have taken.
-- index: inbox_of_run
DELETE FROM conductor_inboxmessage WHERE run_id = %(run_id)s AND number <= %(up_to)s

-- name: free_idempotency_key
-- Let another run use the idempotency key of a run.
-- index: primary key of conductor_run
UPDATE conductor_run SET idempotency_key = NULL WHERE id = %(id)s

-- name: attach_child
-- Make a run the parent of an existing run.
-- index: primary key of conductor_run
UPDATE conductor_run SET parent_id = %(parent_id)s, parent_attempt_id = %(attempt_id)s WHERE id = %(id)s

-- name: insert_webhook_paths
-- Insert a set of payload paths, unless it exists.
-- index: one_row_per_workflow_and_paths
INSERT INTO conductor_webhookpaths (workflow, digest, paths) VALUES (%(workflow)s, %(digest)s, %(paths)s)
ON CONFLICT (workflow, digest) DO NOTHING

-- name: save_webhook_wait
-- Insert the webhook condition of an attempt, or replace it after a rerun.
-- index: primary key of conductor_webhookwait
INSERT INTO conductor_webhookwait (attempt_id, workflow, version, digest, created_at)
VALUES (%(attempt_id)s, %(workflow)s, %(version)s, %(digest)s, %(now)s)
ON CONFLICT (attempt_id) DO UPDATE SET version = excluded.version, digest = excluded.digest,
created_at = excluded.created_at

-- name: save_task_result
-- Insert or replace the attempt whose output later tasks with the same key reuse.
-- index: one_result_per_key
INSERT INTO conductor_cachedresult (name, digest, attempt_id, expires_at)
VALUES (%(name)s, %(digest)s, %(attempt_id)s, %(until)s)
ON CONFLICT (digest, name) DO UPDATE SET attempt_id = excluded.attempt_id, expires_at = excluded.expires_at

-- name: save_run_result
-- Insert or replace the run whose output later runs with the same key reuse.
-- index: one_result_per_key
INSERT INTO conductor_cachedresult (name, digest, attempt_id, run_id, expires_at)
VALUES (%(name)s, %(digest)s, '', %(run_id)s, %(until)s)
ON CONFLICT (digest, name) DO UPDATE SET run_id = excluded.run_id, expires_at = excluded.expires_at
