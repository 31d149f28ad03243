package delaytask

// Pause is what the options of Pause and PauseSchedule say.
type Pause struct {
	Reason string
}

// PauseOption is an option of Pause and PauseSchedule.
type PauseOption func(*Pause) error

// Reason says why, for the people who look at the pause. It is shortened to 1,000 bytes, and kept as long as the pause.
// Default: none.
func Reason(text string) PauseOption {
	return func(p *Pause) error {
		p.Reason = text
		return nil
	}
}
