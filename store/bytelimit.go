package store

// keptText is the size in bytes of the largest text that a cut row keeps. Ids, leases and
// lanes are shorter.
const keptText = 128

// A ByteLimit is the rest of the MaxBytes of a statement, while its rows are read. A Conn makes a
// byte limit for each statement.
type ByteLimit struct {
	most, held int
	full       bool
}

// ByteLimit is the byte limit of a statement before its first row.
func (s Stmt) ByteLimit() ByteLimit { return ByteLimit{most: s.MaxBytes} }

// Exceeded counts the next row, whose texts have so many bytes together, and reports whether the
// Conn must cut the row. After a cut row all further rows are cut.
func (r *ByteLimit) Exceeded(bytes int) bool {
	if r.most == 0 {
		return false
	}
	r.full = r.full || r.held > 0 && r.held+bytes > r.most
	r.held += bytes
	return r.full
}

// Omits reports whether a cut row comes without a text of so many bytes.
func (r *ByteLimit) Omits(bytes int) bool { return bytes > keptText }

// CutRow cuts a row that is already in memory, if it is beyond the limit, and reports whether it
// did.
func (r *ByteLimit) CutRow(row []any) bool {
	if r.most == 0 {
		return false
	}
	bytes := 0
	for _, v := range row {
		bytes += len(textOf(v))
	}
	if !r.Exceeded(bytes) {
		return false
	}
	for i, v := range row {
		if r.Omits(len(textOf(v))) {
			row[i] = nil
		}
	}
	return true
}
