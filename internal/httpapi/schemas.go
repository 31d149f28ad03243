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
	momentSchema   struct{}
	durationSchema struct{}
	anySchema      struct{}
)

func describeTypes(r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[wire.ID](), reflect.TypeFor[idSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[wire.Time](), reflect.TypeFor[timeSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[wire.Moment](), reflect.TypeFor[momentSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[wire.Duration](), reflect.TypeFor[durationSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[json.RawMessage](), reflect.TypeFor[anySchema]())
}

func (idSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^[1-9][0-9]{0,18}$", Examples: []any{"911619959676096449"}}
}

func (timeSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
}

func (momentSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		OneOf: []*huma.Schema{
			{Type: huma.TypeString, Description: "RFC 3339 with a zone, or the digits of the number"},
			{Type: huma.TypeInteger, Format: "int64", Minimum: bound(1e9), Maximum: bound(1e16 - 1),
				Description: "since 1970: seconds (10 digits), milliseconds (13) or microseconds (16)"},
		},
		Examples: []any{"2027-01-31T08:30:00Z"},
	}
}

func bound(n float64) *float64 { return &n }

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
