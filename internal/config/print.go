package config

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
)

// Print writes the settings as YAML that [Load] reads back, with the password of the DSN masked.
func (c Config) Print(w io.Writer) error {
	_, err := io.WriteString(w, c.String())
	return err
}

// String is what Print writes, so that a Config in a log or an error message shows no password either.
func (c Config) String() string {
	c.DSN = MaskDSN(c.DSN)
	encoded, err := yaml.Parser().Marshal(c.tree())
	if err != nil {
		return fmt.Sprintf("settings that cannot be written as YAML: %v", err)
	}
	return string(encoded)
}

// MarshalJSON writes what Print writes, as JSON.
func (c Config) MarshalJSON() ([]byte, error) {
	c.DSN = MaskDSN(c.DSN)
	return json.Marshal(c.tree())
}

// tree nests the settings as the file does.
func (c *Config) tree() map[string]any {
	tree := make(map[string]any)
	for _, s := range settings {
		section, name := tree, s.key
		if parent, child, nested := strings.Cut(s.key, "."); nested {
			section, name = below(tree, parent), child
		}
		section[name] = plain(s.get(c))
	}
	for tag, t := range c.Tags {
		for _, s := range tagSettings {
			if value, isSet := s.get(t); isSet {
				below(below(tree, "tags"), tag)[s.name] = plain(value)
			}
		}
	}
	return tree
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

func plain(value any) any {
	if d, ok := value.(time.Duration); ok {
		return FormatDuration(d)
	}
	return value
}
