-- Messages of the outbox, and Pulse messages. `runs/store/outbox.py` and `taskcluster/store.py` execute these statements.

-- name: consume_message
-- Delete a handled message. Deletes nothing if another process has handled it.
-- index: primary key of conductor_message
DELETE FROM conductor_message WHERE id = %(id)s

-- name: due_messages
-- Find the messages to runs and tasks that were not delivered right after their commit.
-- index: message_due
SELECT id FROM conductor_message
WHERE due_at <= %(now)s AND NOT (subject = 'publish') ORDER BY due_at, id LIMIT %(limit)s

-- name: claim_to_publish
-- Claim due messages to other systems. Locked rows are skipped.
-- index: message_to_publish, primary key of conductor_message
WITH chosen AS MATERIALIZED (
    SELECT m.id FROM conductor_message m WHERE m.subject = 'publish' AND m.due_at <= %(now)s
    ORDER BY m.due_at, m.id LIMIT %(count)s
    FOR UPDATE OF m SKIP LOCKED -- postgresql
)
UPDATE conductor_message SET due_at = %(held_until)s WHERE id IN (SELECT id FROM chosen) RETURNING id

-- name: prune_undelivered
-- Delete undelivered messages that have no effect any more, or only on other systems: not those to open runs, and not
-- those that may reopen an ended run. These are deleted with their run, or by an operator.
-- index: message_undelivered
DELETE FROM conductor_message WHERE due_at = {never} AND sent_at < %(before)s AND (
    subject IN ('publish', 'event', 'act')
    OR (subject IN ('begin', 'child_ended', 'terminate', 'started', 'inbox') AND NOT EXISTS (
        SELECT 1 FROM conductor_run r WHERE r.id = conductor_message."to" AND r.status IN ('PAUSED', 'RUNNING'))))

-- fragment: earlier_message
-- An unpublished earlier message about the same group.
SELECT 1 FROM conductor_pulsemessage e WHERE e.group_id = n.group_id AND e.id < n.id AND e.due_at < {never}

-- name: claim_pulse_messages
-- Claim due Pulse messages: of a task after all its earlier messages, of a group after all earlier ones of its tasks.
-- Locked rows are skipped.
-- index: notice_due, primary key of conductor_pulsemessage
WITH chosen AS MATERIALIZED (
    SELECT n.id FROM conductor_pulsemessage n WHERE n.due_at <= %(now)s AND n.due_at < {never}
    AND NOT EXISTS ({earlier_message} AND e.task_id = n.task_id)
    AND (n.task_id <> '' OR NOT EXISTS ({earlier_message}))
    ORDER BY n.due_at, n.id LIMIT %(count)s
    FOR UPDATE OF n SKIP LOCKED -- postgresql
)
UPDATE conductor_pulsemessage SET due_at = %(held_until)s WHERE id IN (SELECT id FROM chosen) RETURNING id

-- name: delete_oldest_pulse_messages
-- Delete the messages of a task or group except the newest.
-- index: notice_of_task
DELETE FROM conductor_pulsemessage WHERE task_id = %(task_id)s AND group_id = %(group_id)s
AND id <= (SELECT id FROM conductor_pulsemessage WHERE task_id = %(task_id)s AND group_id = %(group_id)s
    ORDER BY id DESC LIMIT 1 OFFSET %(kept)s)
