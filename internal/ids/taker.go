package ids

import (
	"hash/crc32"
	"strconv"
)

// SpreadBy is what a checksum is multiplied by. It is odd, and its bits look random: 2^32 divided by the golden ratio,
// taken from 2^32. The product has 63 bits, for databases without unsigned numbers.
const SpreadBy = 1640531527

// Taker returns the position, of so many, of the node that takes the row in a turn. The node of turn 0 owns the row.
// Later ones take it when earlier ones did not begin it in time. All positions own about as many rows, and have all
// others as their successors.
//
// Databases compute the same for a condition on the id (see package sqlstore). All nodes must agree on it, so it never
// changes.
func Taker(id int64, of, turn int) int {
	var digits [20]byte
	sum := crc32.ChecksumIEEE(strconv.AppendInt(digits[:0], id, 10))
	owner := int((uint64(sum) * SpreadBy >> 16 & (1<<32 - 1)) * uint64(of) >> 32)
	if turn == 0 || of < 2 {
		return owner
	}
	return (owner + turn*(1+int(sum%uint32(of-1)))) % of
}
