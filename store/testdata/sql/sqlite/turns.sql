-- insert_turn
INSERT OR FAIL INTO turns (name, until_at, holder)
VALUES (?, 0, '')
ON CONFLICT DO NOTHING

-- turn
UPDATE turns
SET until_at = ?, holder = ?
WHERE name = ?
  AND (until_at <= ? OR until_at > ?)

-- whose_turn
SELECT holder
FROM turns
WHERE name = ?
