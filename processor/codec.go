package processor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
)

// Codec turns bodies into what is stored, and back. Encode yields UTF-8 text: bodies are stored in a text column. A
// panic of Decode counts as its error. A codec is used concurrently.
type Codec interface {
	Encode(body any) ([]byte, error)
	// Decode stores the body in the value that into points to.
	Decode(data []byte, into any) error
}

// DecodeError says that the stored body of a task does not decode as the type that its processor takes. It
// fails the task for good, because another attempt would meet the same body. SetBody mends the body of a task that is
// still pending. A failed one has to be saved anew.
type DecodeError struct {
	Tag    string
	Type   string // that was wanted
	Offset int64  // bytes of the body that were read before the error; −1 where the codec does not tell
	Err    error  // of the codec
}

func (e *DecodeError) Error() string {
	at := ""
	if e.Offset >= 0 {
		at = fmt.Sprintf(" at byte %d", e.Offset)
	}
	return fmt.Sprintf("delaytask: the body of a task %s does not decode as %s%s: %v", e.Tag, e.Type, at, e.Err)
}

// Unwrap returns the codec's error.
func (e *DecodeError) Unwrap() error { return e.Err }

// decode is the reverse of what a save does with a body. Without a codec a string, a []byte and a json.RawMessage are
// what is stored, and everything else is JSON.
func decode[T any](codec Codec, tag string, data []byte) (body T, err error) {
	if err = decodeInto(codec, data, &body); err == nil {
		return body, nil
	}
	failure := &DecodeError{Tag: tag, Type: reflect.TypeFor[T]().String(), Offset: -1, Err: err}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		failure.Offset = syntax.Offset
	} else if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		failure.Offset = mismatch.Offset
	}
	return body, failure
}

// decodeInto turns a panic into an error. It would cost the other tasks of a pop their attempts, each time anew.
func decodeInto(codec Codec, data []byte, into any) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	if codec != nil {
		return codec.Decode(data, into)
	}
	switch raw := into.(type) {
	case *string:
		*raw = string(data)
	case *[]byte:
		*raw = bytes.Clone(data)
	case *json.RawMessage:
		*raw = bytes.Clone(data)
	default:
		return json.Unmarshal(data, into)
	}
	return nil
}

// encodedBody is a body that a save stores as its codec encodes it.
type encodedBody struct {
	codec Codec
	body  any
}

// EncodeBody is what a save stores.
func (b encodedBody) EncodeBody() ([]byte, error) { return b.codec.Encode(b.body) }
