-- insert_turn
INSERT INTO turns (name, until_at, holder)
SELECT r.name_, 0, ''
FROM
  (SELECT unnest(?::text[]) AS name_) AS r
WHERE 1 = 1
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
