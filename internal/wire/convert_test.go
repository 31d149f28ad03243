package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/report"
)

// Every field of a public value comes back from its JSON, but for those that are listed: a new field has to be carried,
// or listed.
func TestValuesComeBackFromTheirJSON(t *testing.T) {
	t.Parallel()
	comesBack(t, value(FromTask), (*Task).To)
	comesBack(t, value(FromPage), (*Page).To)
	comesBack(t, value(FromExplanation), (*Explanation).To, ".Task.Body")
	comesBack(t, value(FromSchedule), (*Schedule).To)
	comesBack(t, value(FromScheduleExplanation), (*ScheduleExplanation).To)
	comesBack(t, FromScheduleTicks, (*ScheduleTicks).To)
	comesBack(t, value(FromSpec), (*Spec).To)
	comesBack(t, FromNodes, (*NodeList).To)
	comesBack(t, FromTags, (*TagList).To)
	comesBack(t, FromStats, (*Stats).To)
	comesBack(t, value(FromFailures), (*Failures).To)
	comesBack(t, value(FromAuditPage), (*AuditPage).To)
	comesBack(t, value(FromSeries), (*Series).To)
	comesBack(t, value(FromForecast), (*Forecast).To)
	comesBack(t, value(FromOverview), (*Overview).To)
	comesBack(t, func(task delaytask.Task) Popped { return FromPopped(delaytask.NewPopped(task, nil)) },
		func(p *Popped) delaytask.Task {
			task, err := p.To()
			if err != nil {
				t.Error(err)
			}
			return task
		})
	comesBack(t, func(ticks []delaytask.Tick) Ticks { return FromTicks(ticks, nil) },
		func(w *Ticks) []delaytask.Tick {
			ticks, _, err := w.To()
			if err != nil {
				t.Error(err)
			}
			return ticks
		})
}

func value[V, W any](from func(*V) W) func(V) W { return func(v V) W { return from(&v) } }

// comesBack takes a value with all fields set there and back. The paths of what is not carried are in but.
func comesBack[V, W any](t *testing.T, from func(V) W, to func(*W) V, but ...string) {
	t.Helper()
	var before V
	fill(reflect.ValueOf(&before).Elem(), 1)
	text, err := json.Marshal(from(before))
	if err != nil {
		t.Fatal(err)
	}
	var w W
	if err := json.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	for _, path := range differing(reflect.ValueOf(before), reflect.ValueOf(to(&w)), "") {
		if !slices.ContainsFunc(but, func(known string) bool { return strings.HasPrefix(path, known) }) {
			t.Errorf("%v%s does not come back", reflect.TypeFor[V](), path)
		}
	}
}

// fill sets all fields to values that differ and are not zero. Durations are whole milliseconds.
func fill(v reflect.Value, n int) {
	switch at := time.Date(2027, 1, 31, 8, 30, n%60, 0, time.UTC); v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(at))
		return
	case time.Duration:
		v.SetInt(int64(time.Duration(n) * time.Second))
		return
	case netip.Addr:
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})))
		return
	case []byte:
		v.SetBytes(fmt.Appendf(nil, "%d", n))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), n+i)
			}
		}
		if f, is := v.Addr().Interface().(*report.Forecast); is { // its parts depend on each other
			f.Steps = len(f.Tags[0].Due)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n+1)
	case reflect.Map:
		key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(element, n+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, element)
		if headers, is := v.Interface().(map[string]string); is {
			headers[delaytask.AppHeader] = "app"
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(2) // a late policy
	default:
		v.SetInt(int64(n))
	}
}

// differing lists the paths of the fields that are not the same.
func differing(a, b reflect.Value, path string) (paths []string) {
	if at, is := a.Interface().(time.Time); is {
		if !at.Equal(b.Interface().(time.Time)) {
			paths = append(paths, path)
		}
		return paths
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if f := a.Type().Field(i); f.IsExported() {
				paths = append(paths, differing(a.Field(i), b.Field(i), path+"."+f.Name)...)
			}
		}
	case reflect.Slice:
		if a.Len() != b.Len() {
			return []string{path}
		}
		for i := range a.Len() {
			paths = append(paths, differing(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", path, i))...)
		}
	default:
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			paths = []string{path}
		}
	}
	return paths
}

func TestErrorsComeBackFromTheirProblems(t *testing.T) {
	t.Parallel()
	for _, k := range known {
		p, is := FromError(fmt.Errorf("op: %w", k.err))
		if !is || p.Code != k.code || p.Status != k.status || !errors.Is(p.To(), k.err) {
			t.Errorf("%v is %+v, and that is %v", k.err, p, p.To())
		}
	}
	for _, err := range []error{
		&delaytask.DuplicateError{ID: 5}, &delaytask.NotPendingError{ID: 5},
		&delaytask.SpecError{Line: 1, Column: 2, Reason: "why"},
	} {
		p, _ := FromError(err)
		if got := p.To(); !reflect.DeepEqual(got, err) {
			t.Errorf("%v came back as %v", err, got)
		}
	}
	if p, is := FromError(errors.New("dial tcp 10.0.0.1")); is {
		t.Errorf("an error that is not known is told: %v", p)
	}
}
