package config

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"

	"github.com/delaytask/delaytask/internal/wire"
)

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

// LogValue keeps passwords out of logs.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }
