package store

// keptText is the size in bytes of the largest text that a cut row keeps. Ids, leases and
// lanes are shorter.
const keptText = 128

// A Room is the rest of the MaxBytes of a statement, while its rows are read. A Conn makes a
// room for each statement.
type Room struct {
	most, held int
	full       bool
}

// Room is the room of a statement before its first row.
func (s Stmt) Room() Room { return Room{most: s.MaxBytes} }

// Cut counts the next row, whose texts have so many bytes together, and reports whether the
// Conn must cut the row. After a cut row all further rows are cut.
func (r *Room) Cut(bytes int) bool {
	if r.most == 0 {
		return false
	}
	r.full = r.full || r.held > 0 && r.held+bytes > r.most
	r.held += bytes
	return r.full
}

// Left reports whether a cut row comes without a text of so many bytes.
func (r *Room) Left(bytes int) bool { return bytes > keptText }

// Row cuts a row that is already in memory, if it is beyond the room, and reports whether it
// did.
func (r *Room) Row(row []any) bool {
	if r.most == 0 {
		return false
	}
	bytes := 0
	for _, v := range row {
		bytes += len(str(v))
	}
	if !r.Cut(bytes) {
		return false
	}
	for i, v := range row {
		if r.Left(len(str(v))) {
			row[i] = nil
		}
	}
	return true
}
