-- insert_turn
INSERT INTO turns (name, until_at, holder)
VALUES (?, 0, '')/*row*/, (?, 0, '')/*row*/
ON DUPLICATE KEY UPDATE turns.name = turns.name

-- turn
UPDATE turns
SET until_at = ?, holder = ?
WHERE name = ?
  AND (until_at <= ? OR until_at > ?)

-- whose_turn
SELECT holder
FROM turns
WHERE name = ?
