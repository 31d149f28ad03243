package config

import "reflect"

// part ties a name in the file to a field. A part of a [Tag], a [Receiver] or a [Schedule] is optional: one that is
// left out is neither checked nor printed.
type part[S any] struct {
	name string
	set  func(of *S, value any) error
	get  func(of S) (value any, isSet bool)
}

// partOf makes a part of a parser and the field that the parsed value goes to.
func partOf[S, T any](name string, parse func(any) (T, error), field func(*S) *T) part[S] {
	return part[S]{
		name: name,
		set: func(of *S, value any) (err error) {
			*field(of), err = parse(value)
			return err
		},
		get: func(of S) (any, bool) {
			return *field(&of), !reflect.ValueOf(field(&of)).Elem().IsZero()
		},
	}
}

func find[S any](parts []part[S], name string) (part[S], bool) {
	for _, p := range parts {
		if p.name == name {
			return p, true
		}
	}
	return part[S]{}, false
}

// setPart sets the part that is named below the tag, unless it is to skip a known one.
func setPart[S any](of *map[string]S, parts []part[S], tag string, below []string, value any, skip bool) error {
	p, known := find(parts, below[0])
	if !known || len(below) > 1 {
		names := make([]string, len(parts))
		for i, p := range parts {
			names[i] = p.name
		}
		return unknown(names, below[0])
	}
	if skip {
		return nil
	}
	s := (*of)[tag]
	if err := p.set(&s, value); err != nil {
		return err
	}
	if *of == nil {
		*of = make(map[string]S)
	}
	(*of)[tag] = s
	return nil
}
