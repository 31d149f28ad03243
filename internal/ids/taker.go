package ids

import (
	"hash/crc32"
	"strconv"
)

const (
	// HashSlots is into how many slots rows are divided. The nodes divide the slots.
	HashSlots = 1 << hashBits
	hashBits  = 10

	// SpreadBy is what a checksum is multiplied by. It is odd, and its bits look random: 2^32 divided by the golden
	// ratio, taken from 2^32. The product has 63 bits, for databases without unsigned numbers.
	SpreadBy = 1640531527
	// SlotShift is by how many bits the product is shifted to the right. The lowest hashBits of the rest are the slot.
	SlotShift = 48 - hashBits
)

// HashSlot returns the slot of a row, after the hash slots of Redis Cluster. All slots have about as many rows.
//
// Databases compute the same for a condition on the id (see package sqlstore). All nodes must agree on it, so it never
// changes.
func HashSlot(id int64) int { return int(spread(id) >> SlotShift & (HashSlots - 1)) }

// OneOf returns one of so many numbers from 0 on, each for about as many ids.
func OneOf(id int64, of int) int { return int((spread(id) >> 16 & (1<<32 - 1)) * uint64(of) >> 32) }

func spread(id int64) uint64 {
	var digits [20]byte
	return uint64(crc32.ChecksumIEEE(strconv.AppendInt(digits[:0], id, 10))) * SpreadBy
}
