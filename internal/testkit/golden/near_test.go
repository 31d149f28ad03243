package golden

import "testing"

func TestNumbersThatAreNearHold(t *testing.T) {
	const held = "# on A\na: 100\nb: 0\nc, in d: 2.5\n"
	for got, want := range map[string]string{
		held: "", "# on B\na: 105\nb: 0\nc, in d: 2.4\n": "",
		"# on B\na: 106\nb: 0\nc, in d: 2.5\n": "a: from 100 to 106 (+6.0 %)\n# on A\n# on B\n",
		"a: 94\nb: 1\nc, in d: 2.5\n":          "a: from 100 to 94 (-6.0 %)\nb: from 0 to 1 (+Inf %)\n# on A\n",
		"a: 100\nb: 0\ne: 7\n":                 "c, in d: from 2.5 to 0 (-100.0 %)\ne: from 0 to 7 (+Inf %)\n# on A\n",
	} {
		if moved := moves(held, got, 0.05); moved != want {
			t.Errorf("%q moves %q, want %q", got, moved, want)
		}
	}
}
