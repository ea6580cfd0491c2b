package store

// keptText is how long texts are at most, in bytes, that a row which is cut still has. Ids,
// leases and lanes are shorter.
const keptText = 128

// A Room is what is left of the MaxBytes of a statement whose rows are being read. A Conn
// makes one for each statement.
type Room struct {
	most, held int
	full       bool
}

// Room is all that the statement may return.
func (s Stmt) Room() Room { return Room{most: s.MaxBytes} }

// Cut counts the next row, whose texts have so many bytes together, and reports whether
// that row is to be cut. All rows behind a row that is cut are cut too.
func (r *Room) Cut(bytes int) bool {
	if r.most == 0 {
		return false
	}
	r.full = r.full || r.held > 0 && r.held+bytes > r.most
	r.held += bytes
	return r.full
}

// Left reports whether a row that is cut comes without a text of so many bytes.
func (r *Room) Left(bytes int) bool { return bytes > keptText }

// Row cuts a row that is in memory already, if it is to be cut, and reports whether it was.
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
