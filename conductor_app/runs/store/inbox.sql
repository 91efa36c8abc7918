-- The inboxes of runs. `runs/store/data.py` executes these statements.

-- name: read_inbox
-- Read the oldest valid messages in the inbox of a run after a message.
-- index: inbox_of_run
SELECT number, id, received_at, payload FROM conductor_inboxmessage
WHERE run_id = %(run_id)s AND number > %(after)s AND received_at > %(expired_at)s ORDER BY number LIMIT %(count)s

-- name: count_inbox
-- Count the messages in the inbox of a run after a message.
-- index: inbox_of_run
SELECT COUNT(*) FROM conductor_inboxmessage WHERE run_id = %(run_id)s AND number > %(after)s

-- name: find_last_message
-- Find the number of the newest message in the inbox of a run.
-- index: inbox_of_run
SELECT COALESCE(MAX(number), 0) FROM conductor_inboxmessage WHERE run_id = %(run_id)s

-- name: delete_expired_messages
-- Delete the expired messages in the inbox of a run.
-- index: inbox_of_run
DELETE FROM conductor_inboxmessage WHERE run_id = %(run_id)s AND received_at <= %(expired_at)s

-- name: find_inbox_readers
-- Find the attempts of a run that wait for messages.
-- index: task_open
SELECT attempt_id FROM conductor_task WHERE run_id = %(run_id)s AND status = 'ACTIVE' AND type = %(type)s ORDER BY seq
