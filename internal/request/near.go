package request

// Nearest returns the known word that differs from word by the fewest letters, and "" where all differ by more than
// most.
func Nearest(known []string, word string, most int) string {
	best, fewest := "", most+1
	for _, k := range known {
		if n := distance(k, word); n < fewest {
			best, fewest = k, n
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
