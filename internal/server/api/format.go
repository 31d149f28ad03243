package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/delaytask/delaytask/internal/wire"
)

// strictJSON refuses unknown members, duplicate members, and members in another letter case: a misspelt "delay" would
// mean now.
var strictJSON = huma.Format{
	Marshal:   marshal,
	Unmarshal: func(data []byte, v any) error { return plainly(json.Unmarshal(data, v, strictly)) },
}

// strictly refuses unknown members, and a null that could be mistaken for a member that is left out. It keeps no more
// headers than a task may have.
var strictly = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(notNull[*wire.Duration]),
		json.UnmarshalFromFunc(notNull[*wire.Delay]),
		json.UnmarshalFromFunc(notNull[*wire.Moment]),
		json.UnmarshalFromFunc(fewHeaders),
	)),
)

var errNull = errors.New("it is null; leave it out instead")

func notNull[T any](decoder *jsontext.Decoder, _ *T) error {
	if decoder.PeekKind() == 'n' {
		return errNull
	}
	return errors.ErrUnsupported // as if this function were not there
}

// mostHeaders is at least as many bytes as the headers of a task may take.
const mostHeaders = 16 << 10

// fewHeaders reads the headers of a task, no more of them than show that they are too many: as a map they take many
// times their bytes.
func fewHeaders(decoder *jsontext.Decoder, to *map[string]string) error {
	if decoder.PeekKind() != '{' {
		return errors.ErrUnsupported
	}
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	headers, taken := map[string]string{}, 0
	for decoder.PeekKind() == '"' {
		if taken > mostHeaders {
			if err := errors.Join(decoder.SkipValue(), decoder.SkipValue()); err != nil {
				return err
			}
			continue
		}
		name, err := decoder.ReadToken()
		if err != nil {
			return err
		}
		text, value := name.String(), ""
		if err := json.UnmarshalDecode(decoder, &value); err != nil {
			return err
		}
		headers[text] = value
		taken += len(text) + len(value) + len(`"":"",`)
	}
	*to = headers
	_, err := decoder.ReadToken()
	return err
}

// plainly describes a mismatch without the names of this program's types.
func plainly(err error) error {
	wrong, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return err
	}
	place := shortened(string(wrong.JSONPointer))
	switch {
	case errors.Is(wrong.Err, json.ErrUnknownName):
		return fmt.Errorf("%s is not known; see /docs for the names, and mind upper and lower case", place)
	case errors.Is(wrong.Err, strconv.ErrSyntax):
		return fmt.Errorf("%s must be a whole number", place)
	case errors.Is(wrong.Err, strconv.ErrRange):
		return fmt.Errorf("%s is out of range", place)
	case wrong.Err != nil && place != "":
		return fmt.Errorf("%s: %w", place, wrong.Err)
	case place != "":
		return fmt.Errorf("%s must not be %s", place, kindOf(wrong.JSONKind))
	default:
		return fmt.Errorf("want a JSON object, got %s", kindOf(wrong.JSONKind))
	}
}

// shortened cuts the name of a member, which may be as long as a request.
func shortened(place string) string {
	const most = 100
	if len(place) <= most {
		return place
	}
	return strings.ToValidUTF8(place[:most], "") + "…"
}

func kindOf(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	default:
		return "true or false"
	}
}
