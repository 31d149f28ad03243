package row

import "encoding/json"

// tickContext is the column tick_context. Its times are written as they are in columns.
type tickContext struct {
	Previous  string `json:"previous,omitempty"`
	Following string `json:"following,omitempty"`
	Success   string `json:"success,omitempty"`
	Missed    int    `json:"missed,omitempty"`
	Zone      string `json:"zone,omitempty"`
}

// Context returns the column tick_context: a JSON object of what a run sees beside its tick.
func (t *TickOf) Context() []byte {
	return encode(tickContext{t.Previous.String(), t.Following.String(), t.Success.String(), t.Missed, t.Zone})
}

// ReadContext sets what the column tick_context holds. It leaves alone what NULL does not say.
func (t *TickOf) ReadContext(column []byte) error {
	if column == nil {
		return nil
	}
	var c tickContext
	if err := json.Unmarshal(column, &c); err != nil {
		return err
	}
	t.Missed, t.Zone = c.Missed, c.Zone
	for _, stored := range []struct {
		text string
		to   *Time
	}{{c.Previous, &t.Previous}, {c.Following, &t.Following}, {c.Success, &t.Success}} {
		if stored.text == "" {
			continue
		}
		if err := stored.to.Scan(stored.text); err != nil {
			return err
		}
	}
	return nil
}
