package httpapi

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask/internal/wire"
)

// The types of package wire know no framework; these say in the OpenAPI document how each looks in JSON.
type (
	idSchema       struct{}
	timeSchema     struct{}
	durationSchema struct{}
	anySchema      struct{}
)

func describeTypes(r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[wire.ID](), reflect.TypeFor[idSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[wire.Time](), reflect.TypeFor[timeSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[wire.Duration](), reflect.TypeFor[durationSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[json.RawMessage](), reflect.TypeFor[anySchema]())
}

func (idSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^[1-9][0-9]{0,18}$", Examples: []any{"911619959676096449"}}
}

func (timeSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
}

func (durationSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		OneOf: []*huma.Schema{
			{Type: huma.TypeString, Description: "such as 500ms, 30s, 1h30m or 7d"},
			{Type: huma.TypeInteger, Format: "int64", Minimum: new(float64), Description: "milliseconds"},
		},
		Examples: []any{"30m"},
	}
}

func (anySchema) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }
