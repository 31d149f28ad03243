package config

import (
	"reflect"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// Settings that load without an error pass the check, and load the same when they are printed.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(readFile(f, example)), "DELAYTASK_CONCURRENCY=3")
	for _, seed := range []string{
		"", "a", "- 1", "receivers:", "concurrency: {a: 1}", "tags: {t: {ttr: 1m}}", "tags: {1: 2}", "log.level: info",
		"? [a]\n: 1", "a: &a [*a]", "backoff: {jitter: .nan}", "dsn: !!binary aGk=", "\x00",
	} {
		f.Add([]byte(seed), "DELAYTASK_TAGS_T_TTR=2m")
	}
	for _, seed := range []string{
		"DELAYTASK_NODE_NAME=\xff", "DELAYTASK_", "DELAYTASK_CONCURRENCY", "=", "DELAYTASK_BACKOFF_JITTER=1e-9",
	} {
		f.Add([]byte(nil), seed)
	}
	f.Fuzz(func(t *testing.T, file []byte, variable string) {
		c, err := Load(Source{Path: writeFile(t, string(file)), Environ: []string{variable}})
		if err != nil {
			if !reflect.DeepEqual(c, Config{}) {
				t.Fatalf("refused with %v, and yet %+v", err, c)
			}
			return
		}
		servertest.OK(t, c.check())
		c.DSN = MaskDSN(c.DSN)
		again, err := Load(Source{Path: writeFile(t, c.String())})
		again.DSNFrom, again.Overridden = c.DSNFrom, c.Overridden // now the file
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("printed as\n%s\nand read again as\n%s\n%v", c, again, err)
		}
	})
}

// Only the password is hidden, whatever its characters, in both forms of a DSN that have one.
func FuzzMaskDSN(f *testing.F) {
	for _, seed := range []string{"secret", "", ":", "@", "//", "://@", "/?", "sqlite:", "mysql://", "\xff\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, password string) {
		for before, after := range map[string]string{
			"app:": "@tcp(db:3306)/shop?charset=utf8mb4", "mysql://app:": "@db:3306/shop", ":": "@/shop",
		} {
			c := Default()
			c.DSN = before + password + after
			want := Default()
			want.DSN = before + "***" + after
			encoded, err := c.MarshalJSON()
			servertest.OK(t, err)
			if wanted, _ := want.MarshalJSON(); string(encoded) != string(wanted) || c.String() != want.String() {
				t.Fatalf("%q is printed as\n%s", c.DSN, c)
			}
		}
	})
}
