package api

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

// document is the OpenAPI document before its operations. The framework serves none of its own pages.
func document() huma.Config {
	config := huma.DefaultConfig("delaytask", scheduler.Version)
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil // no links to schemas in answers
	config.Formats = map[string]huma.Format{mediaJSON: strictJSON, "json": strictJSON}
	config.RejectUnknownQueryParameters = true
	config.Info.Description = "Durable, punctual delayed tasks. Ids and tokens are strings, times are RFC 3339 in " +
		"UTC, durations are texts such as \"30m\" or, in JSON, numbers of milliseconds. What is refused " +
		"comes as application/problem+json with a code."
	config.Info.Contact = &huma.Contact{Name: "delaytask", URL: "https://github.com/delaytask/delaytask"}
	config.Info.License = &huma.License{Name: "MIT", Identifier: "MIT"}
	config.Servers = []*huma.Server{{URL: "/"}}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "an access token, made by: delaytask token create"},
	}
	config.Tags = groups
	config.Security = []map[string][]string{{}, {"bearer": {}}}
	return config
}

// completeDocument adds what the types of the handlers do not show to the framework, so that a generated client fits.
func completeDocument(api *huma.OpenAPI) {
	schemas := api.Components.Schemas
	of := func(v reflect.Type) *huma.Schema { return schemas.Schema(v, true, "") }
	save, saved := of(reflect.TypeFor[wire.Save]()), of(reflect.TypeFor[wire.Saved]())

	one := api.Paths["/v1/tasks"].Post
	one.RequestBody.Content = map[string]*huma.MediaType{mediaJSON: {Schema: save}}
	one.Responses["200"] = answered("An unfinished task of the tag carries the key already", mediaJSON, saved)
	api.Paths[batchPath].Post.RequestBody.Content = map[string]*huma.MediaType{
		mediaJSON:   {Schema: &huma.Schema{Type: huma.TypeArray, Items: save}},
		mediaNDJSON: {Schema: &huma.Schema{Type: huma.TypeString, Description: "a task in JSON on each line"}},
	}
	many := api.Paths[bulkPath].Post
	many.Responses["200"] = answered("What a dry run has counted", mediaJSON, of(reflect.TypeFor[wire.BulkCount]()))
	many.Responses["202"].Content = answered("", mediaJSON, of(reflect.TypeFor[wire.BulkRun]())).Content
	for _, path := range []string{"/v1/tasks/{id}/body", "/v1/tags/{tag}/keys/{key}/body"} {
		api.Paths[path].Get.Responses["200"].Content = answered("", mediaBytes, &huma.Schema{}).Content
	}
	for _, path := range []string{"/v1/pop", "/v1/tags/{tag}/pop"} {
		api.Paths[path].Post.Responses["204"] = &huma.Response{Description: "No task was due before the wait was over"}
	}
	for _, p := range api.Paths["/v1/pop"].Post.Parameters {
		if p.Name == "tag" {
			p.Required, p.Schema.Nullable = true, false
		}
	}
	problem := of(reflect.TypeFor[wire.Problem]())
	for _, item := range api.Paths {
		for _, op := range operationsOf(item) {
			op.Responses["4XX"] = answered("The request is refused: code says why", mediaProblem, problem)
			op.Responses["5XX"] = answered("The service cannot serve it now", mediaProblem, problem)
			delete(op.Responses, "default")
		}
	}
	for name, schema := range schemas.Map() {
		openSchema(schema, slices.Contains(strictTypes, name))
	}
}

// strictTypes are read from requests, where unknown members are refused. Later releases may add members to answers.
var strictTypes = []string{"Save", "Change", "Finish", "FinishBatch", "Touch", "Release", "Fail", "Register",
	"Preview", "ScheduleSave", "SchedulePause", "ScheduleTrigger", "ScheduleBackfill", "Bulk",
	"BulkFilter"}

// openSchema allows further members in answers, and declares that lists are never null.
func openSchema(s *huma.Schema, strict bool) {
	if !strict && s.AdditionalProperties == false {
		s.AdditionalProperties = nil
	}
	for _, member := range s.Properties {
		if member.Type == huma.TypeArray {
			member.Nullable = false
		}
	}
}

func answered(description, media string, schema *huma.Schema) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{media: {Schema: schema}}}
}

// The types of package wire know no framework. These describe each of them in the OpenAPI document.
type (
	idSchema       struct{}
	timeSchema     struct{}
	momentSchema   struct{}
	durationSchema struct{}
	anySchema      struct{}
)

// enumSchema describes the texts of T.
type enumSchema[T ~string] struct{}

// enumerations are the texts of a type, and what they mean.
var enumerations = map[reflect.Type]struct{ texts, meaning string }{
	reflect.TypeFor[delaytask.ConflictMode](): {
		"keep_existing,replace_time,replace_time_and_body,only_earlier,only_later",
		"What the save does to the pending task that carries the key; default: keep_existing"},
	reflect.TypeFor[delaytask.Overlap](): {"skip,queue_one,replace,allow",
		"What becomes of a tick that falls due while a run is open. skip: it does not run; queue_one: one run " +
			"follows, for the latest tick; replace: the open run is cancelled; allow: it runs beside the open ones, " +
			"up to max_open. Default: skip"},
	reflect.TypeFor[delaytask.Missed](): {"once,skip,all",
		"What becomes of ticks that no process has decided in time. once: the latest runs now; skip: it runs if it " +
			"is at most a minute late; all: each runs, the newest 1,000. Default: once"},
	reflect.TypeFor[delaytask.DST](): {"once,skip,both,literal",
		"Of a local time that a clock change leaves out, and of one that comes twice. once: at the end of the gap, " +
			"first pass; skip: not, first; both: end, both passes; literal: not, both. Default: once"},
	reflect.TypeFor[delaytask.ScheduleState](): {"active,paused,ended,retired",
		"paused: no tick runs, and none is missed; ended: no tick is left; retired: no program declares it any more"},
	reflect.TypeFor[delaytask.Cause](): {"tick,late,manual,backfill",
		"Why there is this run: its time had come, or had passed; an operator triggered it; it belongs to a backfill"},
	reflect.TypeFor[delaytask.LateReason](): {joined(delaytask.LateReasons()), "Why it started over 100 ms late"},
}

func joined[T ~string](texts []T) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = string(text)
	}
	return strings.Join(all, ",")
}

func describeEnum[T ~string](r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[T](), reflect.TypeFor[enumSchema[T]]())
}

func (enumSchema[T]) Schema(huma.Registry) *huma.Schema {
	e := enumerations[reflect.TypeFor[T]()]
	s := &huma.Schema{Type: huma.TypeString, Description: e.meaning}
	for text := range strings.SplitSeq(e.texts, ",") {
		s.Enum = append(s.Enum, text)
	}
	return s
}

func describeTypes(r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[wire.ID](), reflect.TypeFor[idSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[wire.Time](), reflect.TypeFor[timeSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[wire.Moment](), reflect.TypeFor[momentSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[wire.Duration](), reflect.TypeFor[durationSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[wire.Delay](), reflect.TypeFor[durationSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[json.RawMessage](), reflect.TypeFor[anySchema]())
	describeEnum[delaytask.ConflictMode](r)
	describeEnum[delaytask.Overlap](r)
	describeEnum[delaytask.Missed](r)
	describeEnum[delaytask.DST](r)
	describeEnum[delaytask.ScheduleState](r)
	describeEnum[delaytask.Cause](r)
	describeEnum[delaytask.LateReason](r)
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
