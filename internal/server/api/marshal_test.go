package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

func TestAPageIsWrittenWithAllItsMembers(t *testing.T) {
	t.Parallel()
	for _, want := range []wire.Page{
		{Tasks: []wire.Task{}}, {Tasks: []wire.Task{{ID: 1, Tag: "a"}, {ID: 2, Tag: "b"}}, Next: "abc", Stopped: true},
		{Tasks: []wire.Task{}, Stopped: true},
	} {
		var b bytes.Buffer
		if err := marshal(&b, want); err != nil {
			t.Fatal(err)
		}
		var got wire.Page
		if err := json.Unmarshal(b.Bytes(), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v is written as %s, %v", want, b.Bytes(), err)
		}
	}
}
