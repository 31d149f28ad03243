package processor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
)

// Kind is one kind of task: a tag, the type of the body, and default options. It lets the compiler check both sides,
// what saves a task and what runs it. Make it with [NewKind], once, in a package that both import. Its methods take any
// scheduler: the library, the client of the service, and the scheduler of the test kit. A Kind never changes and is
// safe for concurrent use.
type Kind[T any] struct {
	tag      string
	codec    Codec // nil for JSON
	defaults []delaytask.Option
}

// NewKind returns the kind of task with the tag. Its tasks are saved with the default options, which the options of a
// single save follow. Bodies are stored as JSON, but a string, a []byte and a json.RawMessage are stored as they are.
//
// It panics like regexp.MustCompile when the tag is invalid, when an option is, and for [delaytask.WithKey],
// [delaytask.WithID] and [delaytask.WithTime], which belong to one task each.
func NewKind[T any](tag string, defaults ...delaytask.Option) Kind[T] {
	if !delaytask.ValidTag(tag) {
		panic(fmt.Sprintf("delaytask: NewKind(%.140q): %v", tag, delaytask.ErrInvalidTag))
	}
	if err := checkDefaults(defaults); err != nil {
		panic(fmt.Sprintf("delaytask: NewKind(%q): %v", tag, err))
	}
	return Kind[T]{tag: tag, defaults: slices.Clone(defaults)}
}

func checkDefaults(defaults []delaytask.Option) error {
	var s delaytask.Save
	for _, opt := range defaults {
		if opt == nil {
			return fmt.Errorf("%w: it is nil", delaytask.ErrInvalidOption)
		}
		if err := opt(&s); err != nil {
			return err
		}
	}
	if s.Key != "" || s.ID != 0 || !s.At.IsZero() {
		return fmt.Errorf("%w: a key, an id and a time belong to one task: pass them to Save",
			delaytask.ErrInvalidOption)
	}
	s.Key = "of a save" // which WithOnConflict needs, and which each save brings
	return s.Check()
}

// WithCodec returns a kind whose bodies the codec encodes and decodes, strings and bytes too.
func (k Kind[T]) WithCodec(codec Codec) Kind[T] {
	k.codec = codec
	return k
}

// Tag returns the tag of its tasks.
func (k Kind[T]) Tag() string { return k.tag }

// Decode decodes the body of a task, such as the Body of a [delaytask.TaskRow]. It returns a [*DecodeError] when it
// does not decode.
func (k Kind[T]) Decode(body []byte) (T, error) { return decode[T](k.codec, k.tag, body) }

// Every declares a schedule that runs a task with the body at each tick of the spec. It is called before Start. It
// returns what DeclareSchedule returns.
func (k Kind[T]) Every(s ScheduleDeclarer, name string, when delaytask.Spec, body T, opts ...delaytask.Option) error {
	return s.DeclareSchedule(name, when, k.tag, k.bodyOf(body), k.options(opts)...)
}

// Save saves a task that is due after the delay, and returns its id. It returns what SaveDelayTask returns, and
// [delaytask.ErrInvalidBody] when the body does not encode.
func (k Kind[T]) Save(
	ctx context.Context, s Saver, body T, delay time.Duration, opts ...delaytask.Option,
) (int64, error) {
	return s.SaveDelayTask(ctx, k.tag, k.bodyOf(body), delay, k.options(opts)...)
}

// SaveTx saves a task in the caller's transaction: it exists if and only if that commits. It returns what
// SaveDelayTaskTx returns, and [delaytask.ErrInvalidBody] when the body does not encode.
func (k Kind[T]) SaveTx(
	ctx context.Context, s TxSaver, tx delaytask.Tx, body T, delay time.Duration, opts ...delaytask.Option,
) (int64, error) {
	return s.SaveDelayTaskTx(ctx, tx, k.tag, k.bodyOf(body), delay, k.options(opts)...)
}

// Item returns a task for SaveDelayTasks. A body that does not encode is refused there.
func (k Kind[T]) Item(body T, delay time.Duration, opts ...delaytask.Option) delaytask.Item {
	return delaytask.Item{Tag: k.tag, Body: k.bodyOf(body), Delay: delay, Options: k.options(opts)}
}

// bodyOf depends on T alone, as decode does. The pointer hides what an interface holds: a string in an any is encoded
// as JSON, too. It also has the methods that decode uses.
func (k Kind[T]) bodyOf(body T) any {
	if k.codec != nil {
		return encodedBody{k.codec, body}
	}
	switch any(&body).(type) {
	case *string, *[]byte, *json.RawMessage:
		return body
	}
	return &body
}

func (k Kind[T]) options(opts []delaytask.Option) []delaytask.Option {
	return append(k.defaults[:len(k.defaults):len(k.defaults)], opts...)
}

// Process registers fn as the processor of the tag. A body that does not decode fails the task at once, with a
// [DecodeError]. Process returns what Register returns.
func (k Kind[T]) Process(
	s Registrar, fn func(ctx context.Context, task *delaytask.Task, body T) error, opts ...RegisterOption,
) error {
	return s.Register(k.tag, k.Processor(fn), opts...)
}

// Processor returns fn as a [Processor], for what takes one, such as middleware. It is nil when fn is nil.
func (k Kind[T]) Processor(fn func(ctx context.Context, task *delaytask.Task, body T) error) Processor {
	return typed(k.codec, fn)
}

// PoppedOf is a popped task with its body decoded.
type PoppedOf[T any] struct {
	*delaytask.Popped
	Body T
}

// Pop hands out tasks that are due, as the scheduler's Pop does. It fails tasks whose bodies do not decode for good,
// and returns the others. While all that it got have failed, it pops again, within the same
// [delaytask.PopWait]. It returns
// [delaytask.ErrInvalidOption] for [delaytask.PopAlso]: the bodies of another tag may be of another type.
func (k Kind[T]) Pop(ctx context.Context, s Popper, opts ...delaytask.PopOption) ([]PoppedOf[T], error) {
	pop, err := request.NewPop(k.tag, opts...)
	if err == nil && len(pop.Tags) > 1 {
		err = fmt.Errorf("%w: a kind pops tasks of its own tag alone", delaytask.ErrInvalidOption)
	}
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		popped, err := s.Pop(ctx, k.tag, opts...)
		var decoded []PoppedOf[T]
		for _, p := range popped {
			body, undecodable := decode[T](k.codec, p.Tag, p.Body)
			if undecodable != nil {
				// Where this fails, the lease runs out, and the next pop meets the body again.
				_ = p.Fail(ctx, Permanent(undecodable))
				continue
			}
			decoded = append(decoded, PoppedOf[T]{p, body})
		}
		if err != nil || len(decoded) > 0 || len(popped) == 0 {
			return decoded, err
		}
		if pop.Waits {
			opts = append(opts[:len(opts):len(opts)], delaytask.PopWait(max(pop.Wait-time.Since(began), 0)))
		}
	}
}
