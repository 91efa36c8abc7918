-- Payloads in blob storage. `payloads/store.py` executes these statements.

-- name: release_uploads
-- Let uploads expire that are stored again, because the stored copy is encrypted.
-- index: primary key of conductor_storedpayload
UPDATE conductor_storedpayload SET expires_at = 0 WHERE path IN (%(paths)s) AND expires_at IS NOT NULL

-- name: use_payloads
-- Keep payloads that a run uses. A payload that is being deleted has no size.
-- index: primary key of conductor_storedpayload
UPDATE conductor_storedpayload SET expires_at = NULL WHERE path IN (%(paths)s) AND size IS NOT NULL

-- name: release_payloads
-- Let the payloads of a deleted run expire, unless other runs use them.
-- index: payload_of_run, one_use_per_payload_and_run
UPDATE conductor_storedpayload SET expires_at = %(now)s
WHERE path IN (SELECT payload_id FROM conductor_payloadreference WHERE run_id = %(run_id)s)
AND NOT EXISTS (SELECT 1 FROM conductor_payloadreference o
    WHERE o.payload_id = conductor_storedpayload.path AND o.run_id <> %(run_id)s)

-- name: delete_uses_by_run
-- Delete the references of a run to payloads.
-- index: payload_of_run
DELETE FROM conductor_payloadreference WHERE run_id = %(run_id)s

-- name: find_expired_payloads
-- Find the expired unused payloads, oldest first.
-- index: payload_to_forget
SELECT path FROM conductor_storedpayload
WHERE expires_at IS NOT NULL AND expires_at <= %(now)s ORDER BY expires_at LIMIT %(limit)s

-- name: withdraw_payload
-- Make an expired payload unusable before its deletion.
-- index: primary key of conductor_storedpayload
UPDATE conductor_storedpayload SET size = NULL WHERE path = %(path)s AND expires_at <= %(now)s

-- name: delete_uses_of_payload
-- Delete the references to a payload.
-- index: one_use_per_payload_and_run
DELETE FROM conductor_payloadreference WHERE payload_id = %(path)s

-- name: delete_payload
-- Delete the row of a payload.
-- index: primary key of conductor_storedpayload
DELETE FROM conductor_storedpayload WHERE path = %(path)s
