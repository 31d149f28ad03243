package processor

import "fmt"

// AppHeader is the header that holds the application of a task. [WithApp] sets it.
const AppHeader = "delaytask-app"

// WithApp says to which application the task belongs. The service calls back only receivers of this application. The
// task's key is unique within the tag and the application: another application may use the same key. "" means no
// application. It returns [ErrInvalidOption] when app is not 1–128 bytes of A–Z a–z 0–9 . _ - : /
func WithApp(app string) Option {
	return func(s *Save) error {
		if app == "" {
			delete(s.Headers, AppHeader)
			return nil
		}
		if err := checkApp(app); err != nil {
			return err
		}
		return WithHeader(AppHeader, app)(s)
	}
}

// App is the application that the task belongs to, "" when it has none.
func (t *Task) App() string { return t.Headers[AppHeader] }

// App is the application that the task belongs to, "" when it has none.
func (t *TaskRow) App() string { return t.Headers[AppHeader] }

func checkApp(app string) error {
	if !ValidTag(app) {
		return fmt.Errorf("%w: app %.140q: want 1-128 bytes of A-Z a-z 0-9 . _ - : /", ErrInvalidOption, app)
	}
	return nil
}
