package api

import (
	"encoding/json"
	"io"

	"github.com/delaytask/delaytask/internal/wire"
)

// marshal writes an answer. It encodes tasks one by one: all of them encoded would take their memory twice until a slow
// client has read them. A client that is gone, or reads too slowly, is no error.
func marshal(w io.Writer, v any) error {
	out := &client{Writer: w}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	var err error
	switch v := v.(type) {
	case wire.Page:
		end := ""
		if v.Next != "" {
			end = `,"next":"` + v.Next + `"` // base64
		}
		if v.Stopped {
			end += `,"stopped":true`
		}
		err = encodeTasks(out, encoder, v.Tasks, end)
	case *wire.PopReply:
		err = encodeTasks(out, encoder, v.Tasks, "")
	default:
		err = encoder.Encode(v)
	}
	if out.gone {
		return nil
	}
	return err
}

// encodeTasks writes a [wire.Page] or a [wire.PopReply], whose other members are in end.
func encodeTasks[T any](w io.Writer, encoder *json.Encoder, tasks []T, end string) error {
	before := `{"tasks":[`
	for i := range tasks {
		if _, err := io.WriteString(w, before); err != nil {
			return err
		}
		if err := encoder.Encode(&tasks[i]); err != nil {
			return err
		}
		before = ","
	}
	if len(tasks) > 0 {
		before = ""
	}
	_, err := io.WriteString(w, before+"]"+end+"}\n")
	return err
}

// client notes when a write to it fails.
type client struct {
	io.Writer
	gone bool
}

func (c *client) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.gone = c.gone || err != nil
	return n, err
}
