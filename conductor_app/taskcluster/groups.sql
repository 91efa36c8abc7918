-- Task groups, dependencies, and the messages about them. `taskcluster/store.py` executes these statements.

-- fragment: group_columns
g.id, g.scheduler_id, g.created_at, g.expires_at, g.sealed_at

-- name: load_group
-- Load a group.
-- index: primary key of conductor_taskgroup
SELECT {group_columns} FROM conductor_taskgroup g WHERE g.id = %(group_id)s

-- name: load_group_for
-- Ask whether a task exists, and load the group that it shall belong to.
-- index: primary key of conductor_standalonetask, primary key of conductor_taskgroup
SELECT EXISTS (SELECT 1 FROM conductor_standalonetask s WHERE s.task_id = %(task_id)s), {group_columns}
FROM (SELECT 1 AS one) o LEFT JOIN conductor_taskgroup g ON g.id = %(group_id)s

-- name: insert_group
-- Insert a group, unless another process has just inserted it.
-- index: none: inserts a row
INSERT INTO conductor_taskgroup (id, scheduler_id, created_at, expires_at, sealed_at)
VALUES (%(id)s, %(scheduler_id)s, %(created_at)s, %(expires_at)s, %(sealed_at)s) ON CONFLICT DO NOTHING

-- name: find_unresolved
-- Ask whether a group has a task that was never resolved.
-- index: standalone_unresolved
SELECT 1 FROM conductor_standalonetask o WHERE NOT o.ever_resolved AND o.group_id = %(group_id)s LIMIT 1

-- name: lock_required
-- Lock tasks that a new task requires against changes.
-- index: primary key of conductor_standalonetask
SELECT s.task_id, s.expires_at FROM conductor_standalonetask s WHERE s.task_id IN (%(task_ids)s) ORDER BY s.task_id
FOR SHARE OF s -- postgresql

-- name: load_statuses
-- Load the statuses of tasks.
-- index: primary key of conductor_task
SELECT id, status FROM conductor_task WHERE id IN (%(task_ids)s)

-- fragment: dependents
SELECT d.task_id FROM conductor_dependency d JOIN conductor_standalonetask s ON s.task_id = d.task_id
WHERE d.required_id = %(required_id)s AND NOT d.is_satisfied AND d.task_id <> d.required_id

-- name: find_dependents
-- Find the tasks with an unsatisfied dependency on a completed task.
-- index: dependency_to_satisfy
{dependents}
ORDER BY d.task_id LIMIT %(limit)s

-- name: find_dependents_accepting_failure
-- Find the tasks with an unsatisfied dependency on a task that has failed, if they accept its failure.
-- index: dependency_to_satisfy
{dependents} AND s.accepts_failure
ORDER BY d.task_id LIMIT %(limit)s

-- name: insert_resolved_message
-- Insert the message that a task is resolved.
-- index: none: inserts a row
INSERT INTO conductor_message ("to", subject, facts, sent_at, due_at, tries, error)
VALUES (%(task_id)s, 'resolved', %(facts)s, %(now)s, %(now)s, 0, '') RETURNING id

-- name: delete_messages_about_group
-- Delete the messages to check a group.
-- index: message_about_group
DELETE FROM conductor_message WHERE subject = '{about_group}' AND "to" = %(group_id)s

-- name: delete_premature_messages
-- Delete due messages about groups with open tasks. Rows that the last task of a group is deleting are skipped: waiting
-- for each other would be a deadlock.
-- index: message_about_group, standalone_unresolved, primary key of conductor_message
DELETE FROM conductor_message WHERE id IN (
    SELECT m.id FROM conductor_message m
    WHERE m.subject = '{about_group}' AND m.due_at <= %(now)s AND NOT (m.subject = 'publish')
    AND EXISTS (SELECT 1 FROM conductor_standalonetask o WHERE NOT o.ever_resolved AND o.group_id = m."to")
    FOR UPDATE OF m SKIP LOCKED -- postgresql
)
