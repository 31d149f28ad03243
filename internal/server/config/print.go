package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"

	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/wire"
)

// masked stands where a secret would.
const masked = "***"

// Print writes the settings as YAML that [Load] reads back, with the password of the DSN, all secrets, and what often
// is secret in receivers' addresses masked.
func (c Config) Print(w io.Writer) error {
	_, err := io.WriteString(w, c.String())
	return err
}

// String returns what Print writes, so that a Config in a log or an error message shows no password.
func (c Config) String() string {
	c.mask()
	encoded, err := yaml.Parser().Marshal(c.tree(add))
	if err != nil {
		return fmt.Sprintf("settings that cannot be written as YAML: %v", err)
	}
	return string(encoded)
}

// MarshalJSON writes what Print writes as JSON for programs: a duration is a number in a field that ends in _ms.
func (c Config) MarshalJSON() ([]byte, error) {
	c.mask()
	return json.Marshal(c.tree(addMillis))
}

// mask hides secrets. It is called on a copy.
func (c *Config) mask() {
	c.DSN = MaskDSN(c.DSN)
	if c.Secret != "" {
		c.Secret = masked
	}
}

// tree nests the settings as the file does. add puts one into its section.
func (c *Config) tree(add func(section map[string]any, name string, value any)) map[string]any {
	tree := make(map[string]any)
	for _, s := range settings {
		section, name := tree, s.name
		for parent, child, nested := strings.Cut(name, "."); nested; parent, child, nested = strings.Cut(name, ".") {
			section, name = below(section, parent), child
		}
		value, _ := s.get(*c)
		add(section, name, value)
	}
	nest(tree, "receivers", c.Receivers, receiverSettings, add)
	nest(tree, "schedules", c.Schedules, scheduleSettings, add)
	nest(tree, "tags", c.Tags, tagSettings, add)
	return tree
}

// nest puts what is set of each into the section.
func nest[S any](
	tree map[string]any, section string, all map[string]S, parts []part[S],
	add func(section map[string]any, name string, value any),
) {
	for name, one := range all {
		for _, p := range parts {
			if value, isSet := p.get(one); isSet {
				add(below(below(tree, section), name), p.name, value)
			}
		}
	}
}

// below returns the section of that name and makes it when it is missing.
func below(tree map[string]any, name string) map[string]any {
	section, ok := tree[name].(map[string]any)
	if !ok {
		section = make(map[string]any)
		tree[name] = section
	}
	return section
}

func add(section map[string]any, name string, value any) { section[name] = plain(value) }

func addMillis(section map[string]any, name string, value any) {
	if d, ok := value.(time.Duration); ok {
		name, value = name+"_ms", d.Milliseconds()
	}
	add(section, name, value)
}

func plain(value any) any {
	switch v := value.(type) {
	case time.Duration:
		return wire.FormatDuration(v)
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.Format(time.RFC3339Nano)
	case []string:
		return append([]string{}, v...) // an empty list is [], not null
	default:
		return value
	}
}

// MaskDSN hides the password of a DSN in each of its forms. A password may contain the characters that end it, so
// everything from the first colon to the last @ is hidden; that may hide too much, never too little. An invalid DSN may
// hold its password anywhere: unless an address follows the @, all of it is hidden.
func MaskDSN(dsn string) string {
	if dsn == "" || strings.HasPrefix(dsn, "sqlite:") {
		return dsn
	}
	_, err := sqlstore.ParseDSN(dsn)
	scheme, rest := "", dsn
	if after, ok := strings.CutPrefix(dsn, "mysql://"); ok {
		scheme, rest = "mysql://", after
	}
	at := strings.LastIndexByte(rest, '@')
	user, _, hasPassword := strings.Cut(rest[:max(at, 0)], ":")
	switch {
	case err != nil && (!hasPassword || !beginsAddress.MatchString(rest[at+1:])):
		return masked
	case !hasPassword:
		return dsn
	}
	return scheme + user + ":***" + rest[at:]
}

// beginsAddress tells what may follow the user of a DSN.
var beginsAddress = regexp.MustCompile(`^(?:\w+\(|[\w.-]+:\d+/|/)`)

// maskURL hides what often is secret in an address. A malformed URL is hidden as a whole.
func maskURL(text string) string { return cmp.Or(redact.Address(text, masked), masked) }
