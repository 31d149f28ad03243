package delaytask

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/processor"
)

func TestSaveRefusesBadInputAndStoresNothing(t *testing.T) {
	t.Parallel()
	f := open(t, func(c *Config) { c.BodyLimit = 1000 })
	allBytes := make([]byte, 256)
	for i := range allBytes {
		allBytes[i] = byte(i)
	}
	type save struct {
		tag   string
		body  any
		delay time.Duration
		opts  []Option
	}
	tag := func(tag string) save { return save{tag: tag} }
	body := func(body any) save { return save{tag: "t", body: body} }
	delay := func(d time.Duration) save { return save{tag: "t", delay: d} }
	with := func(opts ...Option) save { return save{tag: "t", opts: opts} }
	at := func(year int, month time.Month, day int) Option {
		return WithTime(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
	}

	for name, c := range map[string]struct {
		save
		want error
	}{
		"an empty tag":                     {tag(""), ErrInvalidTag},
		"a tag of 129 bytes":               {tag(strings.Repeat("x", 129)), ErrInvalidTag},
		"a tag with NUL":                   {tag("a\x00"), ErrInvalidTag},
		"a tag with CR":                    {tag("a\r"), ErrInvalidTag},
		"a tag with LF":                    {tag("a\nb"), ErrInvalidTag},
		"a tag with a tab":                 {tag("\ta"), ErrInvalidTag},
		"a tag with DEL":                   {tag("a\x7f"), ErrInvalidTag},
		"a tag that is not UTF-8":          {tag("\xff\xfe"), ErrInvalidTag},
		"a tag with a trailing space":      {tag("a "), ErrInvalidTag},
		"a tag with SQL":                   {tag("'; DROP TABLE delay_task_message; --"), ErrInvalidTag},
		"a tag with a percent sign":        {tag("a%"), ErrInvalidTag},
		"a tag with a backslash":           {tag(`a\`), ErrInvalidTag},
		"a tag with an emoji":              {tag("a😀"), ErrInvalidTag},
		"a tag with a text direction mark": {tag("a\u202eb"), ErrInvalidTag},
		"a tag with a composed letter":     {tag("\u00e9"), ErrInvalidTag},
		"a tag with a combining letter":    {tag("e\u0301"), ErrInvalidTag},
		"a tag like a URL":                 {tag("a/b?c#d"), ErrInvalidTag},

		"a body of all byte values":       {body(allBytes), ErrInvalidBody},
		"a body that does not marshal":    {body(make(chan int)), ErrInvalidBody},
		"a body one byte over the limit":  {body(strings.Repeat("x", 1001)), ErrBodyTooLarge},
		"a body over any server's packet": {body(bytes.Repeat([]byte("x"), 20<<20)), ErrBodyTooLarge},

		"a delay of -1 ns":                {delay(-1), ErrInvalidDelay},
		"the most negative delay":         {delay(math.MinInt64), ErrInvalidDelay},
		"the longest duration":            {delay(math.MaxInt64), ErrDelayTooLong},
		"a time after the year 9998":      {with(at(9999, 1, 1)), ErrDelayTooLong},
		"a time that is not set":          {with(WithTime(time.Time{})), ErrInvalidTime},
		"a time in 1969":                  {with(at(1969, 7, 20)), ErrInvalidTime},
		"a time on 1970-01-01":            {with(at(1970, 1, 1)), ErrInvalidTime},
		"a time and a delay":              {save{tag: "t", delay: 1, opts: []Option{at(2030, 1, 1)}}, ErrInvalidOption},
		"a key of 64 KiB":                 {with(WithKey(strings.Repeat("k", 64<<10))), ErrInvalidKey},
		"a key that is not UTF-8":         {with(WithKey("\xff")), ErrInvalidKey},
		"a key of the reserved space":     {with(WithKey("s3:7")), ErrInvalidKey},
		"a negative id":                   {with(WithID(-1)), ErrInvalidID},
		"the id 0":                        {with(WithID(0)), ErrInvalidID},
		"an id over 63 bits":              {with(WithID(math.MinInt64)), ErrInvalidID},
		"an id that NewID never makes":    {with(WithID(7)), ErrInvalidID},
		"an id that is the last there is": {with(WithID(math.MaxInt64)), ErrInvalidID},
		"a negative TTR":                  {with(WithTTR(-1)), ErrInvalidTTR},
		"a TTR of ten years":              {with(WithTTR(10 * 365 * day)), ErrInvalidTTR},
		"negative max attempts":           {with(WithMaxAttempts(-1)), ErrInvalidMaxAttempts},
		"max attempts of 2^31":            {with(WithMaxAttempts(math.MaxInt32 + 1)), ErrInvalidMaxAttempts},
		"a priority over 100":             {with(WithPriority(101)), ErrInvalidPriority},
		"a priority under -100":           {with(WithPriority(-101)), ErrInvalidPriority},
		"headers over 16 KiB":             {with(WithHeader("h", strings.Repeat("x", 16<<10))), ErrInvalidHeaders},
		"a header that is not UTF-8":      {with(WithHeader("h", "\xff")), ErrInvalidHeaders},
		"a negative max lateness":         {with(WithMaxLateness(-1, LateSkip)), ErrInvalidOption},
		"a late policy that nobody knows": {with(WithMaxLateness(time.Second, 7)), ErrInvalidOption},
		"an option that is nil":           {with(nil), ErrInvalidOption},
	} {
		id, err := f.SaveDelayTask(t.Context(), c.tag, c.body, c.delay, c.opts...)
		if id != 0 || !errors.Is(err, c.want) {
			t.Errorf("%s: got %d, %v, want %v", name, id, err, c.want)
		}
		_, err = f.SaveDelayTasks(t.Context(), []Item{{Tag: "good"}, {Tag: c.tag, Body: c.body, Delay: c.delay, Options: c.opts}})
		if refused, ok := errors.AsType[*BatchError](err); !ok || refused.Index != 1 || !errors.Is(err, c.want) {
			t.Errorf("%s, second in a batch: got %v, want %v for index 1", name, err, c.want)
		}
	}
	if n := f.count(t); n != 0 {
		t.Errorf("%d tasks are stored, want none", n)
	}
	if _, err := f.SaveDelayTask(t.Context(), "t", "{}", 0); err != nil {
		t.Errorf("the next good save: %v", err)
	}
}

func TestSaveStoresWhatIsUnusualButRight(t *testing.T) {
	t.Parallel()
	f := open(t)
	save := func(tag string, body any, delay time.Duration, opts ...Option) Task {
		t.Helper()
		id, err := f.SaveDelayTask(t.Context(), tag, body, delay, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return f.get(t, id)
	}
	is := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}

	for _, tag := range []string{"a", strings.Repeat("x", 128), "../../etc", "a_b", "A"} {
		is("the tag", save(tag, nil, 0).Tag, tag)
	}
	page, err := f.List(t.Context(), Filter{Tag: "A"})
	if err != nil || len(page.Tasks) != 1 {
		t.Errorf("tag A has %d tasks, %v, want 1: letter case counts", len(page.Tasks), err)
	}

	ascii := make([]byte, 128)
	for i := range ascii {
		ascii[i] = byte(i)
	}
	is("a body of all ASCII", string(save("t", ascii, 0).Body), string(ascii))
	is("a nil body", string(save("t", nil, 0).Body), "")
	is("an empty body", string(save("t", "", 0).Body), "")
	is("a body at the limit", len(save("t", strings.Repeat("x", 1<<20), 0).Body), 1<<20)

	is("a delay of 0", save("t", nil, 0).Delay, time.Duration(0))
	is("a delay of 1 ns", save("t", nil, 1).Delay, time.Millisecond)
	is("a delay of 0.4 ms", save("t", nil, 400*time.Microsecond).Delay, time.Millisecond)

	past := save("t", nil, 0, WithTime(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)))
	is("the delay of a past time", past.Delay, time.Duration(0))
	if past.Expected.Year() < 2024 {
		t.Errorf("a past time is expected at %v, want now", past.Expected)
	}
	zone := time.FixedZone("CEST", 2*60*60)
	is("a time in a zone", save("t", nil, 0, WithTime(time.Date(2190, 10, 28, 2, 30, 0, 0, zone))).Expected,
		time.Date(2190, 10, 28, 0, 30, 0, 0, time.UTC))
	later := time.Now().Add(time.Hour) // with a monotonic reading
	if got := save("t", nil, 0, WithTime(later)).Expected; got.Before(later) || got.Sub(later) > time.Microsecond {
		t.Errorf("expected at %v, want %v", got, later)
	}

	is("the key of a task without one", save("t", nil, 0, WithKey("")).Key, save("t", nil, 0, WithKey("")).Key)
	is("a key of 255 letters", save("t", nil, 0, WithKey(strings.Repeat("é", 255))).Key, strings.Repeat("é", 255))
	is("no TTR", save("t", nil, 0, WithTTR(0)).TTR, 15*time.Second)
	is("a TTR of 1 ms", save("t", nil, 0, WithTTR(time.Millisecond)).TTR, time.Second)
	is("no max attempts", save("t", nil, 0, WithMaxAttempts(0)).MaxAttempts, 20)
	is("no limit of attempts", save("t", nil, 0, WithNoAttemptLimit()).MaxAttempts, 0)
}

func TestTheSameIDTwiceIsOneTask(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := NewID()
	for range 2 {
		if got, err := f.SaveDelayTask(t.Context(), "t", "body", time.Hour, WithID(id)); got != id || err != nil {
			t.Fatalf("got %d, %v, want %d", got, err, id)
		}
	}
	if _, err := f.SaveDelayTask(t.Context(), "t", "another", time.Hour, WithID(id)); !errors.Is(err, ErrConflict) {
		t.Errorf("another content: got %v, want %v", err, ErrConflict)
	}
	if n := f.count(t); n != 1 {
		t.Errorf("%d tasks, want 1", n)
	}
}

func TestReferencesAreChecked(t *testing.T) {
	t.Parallel()
	f := open(t)
	for name, c := range map[string]struct {
		ref  Ref
		want error
	}{
		"no reference":    {Ref{}, ErrInvalidID},
		"a negative id":   {ID(-1), ErrInvalidID},
		"an unknown id":   {ID(NewID()), ErrNotFound},
		"a small id":      {ID(7), ErrNotFound},
		"an empty key":    {Key("t", ""), ErrInvalidKey},
		"an empty tag":    {Key("", "k"), ErrInvalidTag},
		"an unknown key":  {Key("t", "k"), ErrNotFound},
		"a tag with SQL":  {Key("' OR 1=1 --", "k"), ErrInvalidTag},
		"a key with SQL":  {Key("t", "' OR 1=1 --"), ErrNotFound},
		"a key with NULs": {Key("t", "\x00"), ErrNotFound},
	} {
		calls := map[string]func() error{
			"Get":        func() error { _, err := f.Get(t.Context(), c.ref); return err },
			"Cancel":     func() error { _, err := f.Cancel(t.Context(), c.ref); return err },
			"Reschedule": func() error { _, err := f.Reschedule(t.Context(), c.ref, 0); return err },
			"SetBody":    func() error { _, err := f.SetBody(t.Context(), c.ref, nil); return err },
			"Retry":      func() error { return f.Retry(t.Context(), c.ref) },
			"Explain":    func() error { _, err := f.Explain(t.Context(), c.ref); return err },
		}
		for call, do := range calls {
			if err := do(); !errors.Is(err, c.want) {
				t.Errorf("%s with %s: got %v, want %v", call, name, err, c.want)
			}
		}
	}
}

func TestChangesAndListsCheckTheirArguments(t *testing.T) {
	t.Parallel()
	f := open(t)
	id, err := f.SaveDelayTask(t.Context(), "t", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	reschedule := func(d time.Duration, opts ...ChangeOption) error {
		_, err := f.Reschedule(t.Context(), ID(id), d, opts...)
		return err
	}
	list := func(filter Filter) error {
		_, err := f.List(t.Context(), filter)
		return err
	}
	_, timedCancel := f.Cancel(t.Context(), ID(id), To(time.Now()))
	_, nilOption := f.Cancel(t.Context(), ID(id), nil)
	_, otherStatus := f.CancelAll(t.Context(), Bulk{Filter: Filter{Status: Completed}})
	for name, c := range map[string]struct{ err, want error }{
		"a reschedule by -1 ns":        {reschedule(-1), ErrInvalidDelay},
		"a reschedule by 292 years":    {reschedule(math.MaxInt64), ErrDelayTooLong},
		"a reschedule to no time":      {reschedule(0, To(time.Time{})), ErrInvalidTime},
		"a reschedule to both":         {reschedule(time.Second, To(time.Now())), ErrInvalidOption},
		"a cancel with a time":         {timedCancel, ErrInvalidOption},
		"a cancel with a nil option":   {nilOption, ErrInvalidOption},
		"a cancel of completed tasks":  {otherStatus, ErrInvalidOption},
		"a pause of no tag":            {f.Pause(t.Context(), ""), ErrInvalidTag},
		"a resume of a bad tag":        {f.Resume(t.Context(), "a b"), ErrInvalidTag},
		"a list of an unknown status":  {list(Filter{Status: "done"}), ErrInvalidOption},
		"a list of a bad tag":          {list(Filter{Tag: "\xff"}), ErrInvalidTag},
		"a page of -1":                 {list(Filter{Limit: -1}), ErrInvalidOption},
		"a page of a thousand million": {list(Filter{Limit: 1e9}), nil},
		"a negative cursor":            {list(Filter{After: -1}), ErrInvalidOption},
		"a default page":               {list(Filter{}), nil},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.err, c.want)
		}
	}
	if task := f.get(t, id); task.Status != Pending || task.Version != 0 {
		t.Errorf("the task was changed: %+v", task)
	}
}

func TestRegisterRefusesMistakes(t *testing.T) {
	t.Parallel()
	f := open(t)
	register := func(tag string, p processor.Processor, opts ...processor.RegisterOption) error {
		return f.Register(tag, p, opts...)
	}
	ok := processor.Func(nothing)
	for name, c := range map[string]struct{ err, want error }{
		"a processor":            {register("t", ok), nil},
		"a second one":           {register("t", ok), ErrTagRegistered},
		"nil":                    {register("nil", nil), ErrNilProcessor},
		"a nil function":         {register("nil", processor.Func(nil)), ErrNilProcessor},
		"a nil typed function":   {register("nil", processor.Typed[int](nil)), ErrNilProcessor},
		"a bad tag":              {register("a b", ok), ErrInvalidTag},
		"a nil option":           {register("u", ok, nil), ErrInvalidOption},
		"a negative concurrency": {register("u", ok, processor.Concurrency(-1)), ErrInvalidOption},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.err, c.want)
		}
	}
}

func TestInvalidConfigsAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"negative workers":             func(c *Config) { c.Workers = -1 },
		"a TTR below a second":         func(c *Config) { c.TTR = time.Millisecond },
		"negative max attempts":        func(c *Config) { c.MaxAttempts = -1 },
		"a look-ahead of a minute":     func(c *Config) { c.LookAhead = time.Minute + 1 },
		"a horizon below two looks":    func(c *Config) { c.Horizon = 2*time.Second - 1 },
		"a tiny heap":                  func(c *Config) { c.HeapCap = 1 },
		"a negative body limit":        func(c *Config) { c.BodyLimit = -1 },
		"no room for errors":           func(c *Config) { c.ErrorLimit = 1 },
		"a heartbeat that is too slow": func(c *Config) { c.Heartbeat = 2 * time.Second },
		"a quarantine after one crash": func(c *Config) { c.Quarantine = 1 },
	} {
		cfg := Config{}
		change(&cfg)
		if _, err := Open(t.Context(), "sqlite:"+t.TempDir()+"/x.db", cfg); !errors.Is(err, ErrInvalidConfig) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := New(t.Context(), nil, Config{}); !errors.Is(err, ErrInvalidConfig) {
		t.Errorf("no pool: got %v", err)
	}
	_, err := Open(nil, "sqlite:x.db", Config{}) //nolint:staticcheck // a nil context is the case
	if !errors.Is(err, ErrNilContext) {
		t.Errorf("no context: got %v", err)
	}
}
