-- Standalone tasks. `taskcluster/store.py` executes these statements.

-- fragment: task_state
t.status, t.created_at, t.name,
EXISTS (SELECT 1 FROM conductor_dependency d
    WHERE d.task_id = %(task_id)s AND NOT d.is_satisfied AND d.required_id <> %(ignored_dependency)s),
EXISTS (SELECT 1 FROM conductor_dependency d
    WHERE d.required_id = %(task_id)s AND NOT d.is_satisfied AND d.task_id <> d.required_id),

-- name: lock_standalone
-- Load a task, locked until the transaction ends.
-- index: primary key of conductor_standalonetask
SELECT s.task_id, {task_columns} FROM conductor_standalonetask s WHERE s.task_id = %(task_id)s
FOR UPDATE OF s -- postgresql

-- name: load_task_state
-- Load the attempts of a locked task, and whether tasks wait: it for others, others for it, and its group.
-- index: primary key of conductor_task, one_attempt_per_task_and_number, dependency_to_satisfy, standalone_unresolved
SELECT {task_state}
EXISTS (SELECT 1 FROM conductor_standalonetask o
    WHERE o.group_id = %(group_id)s AND NOT o.ever_resolved AND o.task_id <> %(task_id)s), {attempt_columns}
FROM conductor_task t LEFT JOIN conductor_attempt a ON a.task_id = t.id WHERE t.id = %(task_id)s ORDER BY a.number

-- name: load_standalone
-- Load a task with its state, without a lock.
-- index: primary key of conductor_standalonetask, primary key of conductor_task, one_attempt_per_task_and_number
SELECT s.task_id, {task_columns}, {task_state}
EXISTS (SELECT 1 FROM conductor_standalonetask o
    WHERE o.group_id = (SELECT g.group_id FROM conductor_standalonetask g WHERE g.task_id = %(task_id)s)
    AND NOT o.ever_resolved AND o.task_id <> %(task_id)s), {attempt_columns}
FROM conductor_standalonetask s JOIN conductor_task t ON t.id = s.task_id
LEFT JOIN conductor_attempt a ON a.task_id = s.task_id WHERE s.task_id = %(task_id)s ORDER BY a.number

-- name: lock_task_row
-- Lock a task against changes.
-- index: primary key of conductor_standalonetask
SELECT s.task_id FROM conductor_standalonetask s WHERE s.task_id = %(task_id)s
FOR UPDATE OF s -- postgresql

-- name: lock_attempt_rows
-- Lock the attempts of a task against claims.
-- index: one_attempt_per_task_and_number
SELECT a.id FROM conductor_attempt a WHERE a.task_id = %(task_id)s
FOR UPDATE OF a -- postgresql

-- name: satisfy_dependency
-- Note that the task no longer waits for another one.
-- index: one_dependency_per_pair
UPDATE conductor_dependency SET is_satisfied = TRUE WHERE required_id = %(required_id)s AND task_id = %(task_id)s

-- name: set_attempt_priority
-- Set the priority of an attempt.
-- index: primary key of conductor_attempt
UPDATE conductor_attempt SET priority = %(priority)s WHERE id = %(id)s

-- name: lock_pending_attempt
-- Lock a pending attempt. A claim locks attempts, not tasks, and must not start one that the decision blocks.
-- index: primary key of conductor_attempt
UPDATE conductor_attempt SET status = status WHERE id = %(id)s AND status = %(status)s

-- name: set_task_status
-- Set the status and the newest attempt of a task, if the status is as expected.
-- index: primary key of conductor_task
UPDATE conductor_task SET status = %(status)s, attempt_id = %(attempt_id)s
WHERE id = %(id)s AND status = %(expected)s

-- name: load_task_definition
-- Load the definition of a task.
-- index: primary key of conductor_standalonetask
SELECT definition FROM conductor_standalonetask WHERE task_id = %(task_id)s
