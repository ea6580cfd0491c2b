package store

// keptText is the size in bytes of the largest text that stays in a cut row. Ids, leases and
// lanes are shorter, so a cut job can still be settled or released.
const keptText = 128

// A ByteLimit counts the bytes of a statement's rows against Stmt.MaxBytes, while the Conn
// reads the rows. A Conn makes one for each statement. It is not safe for concurrent use.
type ByteLimit struct {
	most, held int  // bytes: the bound, 0 for none, and the sum so far
	full       bool // whether a row was cut
}

// ByteLimit returns the limit of the statement, before its first row.
func (s Stmt) ByteLimit() ByteLimit { return ByteLimit{most: s.MaxBytes} }

// Exceeded counts the next row, whose texts have so many bytes together. It reports whether the
// Conn must cut that row. After the first cut row all further rows are cut, so that the whole
// rows are the first ones.
func (r *ByteLimit) Exceeded(bytes int) bool {
	if r.most == 0 {
		return false
	}
	r.full = r.full || r.held > 0 && r.held+bytes > r.most
	r.held += bytes
	return r.full
}

// Omits reports whether a cut row loses a text of so many bytes.
func (r *ByteLimit) Omits(bytes int) bool { return bytes > keptText }

// CutRow counts a row that is in memory, and sets its large texts to nil if the row must be
// cut. It reports whether it did. A Conn that can leave a text out earlier uses Exceeded and
// Omits.
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
