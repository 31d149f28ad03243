package wire

// Forecast is how many tasks are overdue at a moment, and how many fall due in each step after it.
type Forecast struct {
	At      Time          `json:"at" doc:"The moment, by the database's clock"`
	Start   Time          `json:"start" doc:"Of the first step, which has begun"`
	StepMS  int64         `json:"step_ms"`
	Steps   int           `json:"steps" doc:"How many there are"`
	Total   TagForecast   `json:"total" doc:"Of all tags in the answer"`
	Tags    []TagForecast `json:"tags" doc:"Those of which something is or falls due"`
	LeftOut bool          `json:"left_out,omitempty" doc:"There are more tags or schedules than are read"`
}

// TagForecast is the forecast of one tag.
type TagForecast struct {
	Tag     string    `json:"tag,omitempty"`
	Overdue DueTasks  `json:"overdue"`
	Sum     DueTasks  `json:"sum" doc:"Of all steps"`
	Due     []DueStep `json:"due" doc:"Steps in which nothing falls due are left out"`
}

// DueTasks is how many tasks fall due.
type DueTasks struct {
	Tasks     int64  `json:"tasks"`
	Ticks     int64  `json:"ticks,omitempty" doc:"Of these, ticks of schedules that have no task yet"`
	Precision string `json:"precision" enum:"exact,about,at_least" doc:"about: estimated; at_least: there may be more"`
}

// DueStep is how many tasks fall due in a step.
type DueStep struct {
	Step int  `json:"step" doc:"Its number, from 0 on"`
	From Time `json:"from" doc:"When it begins"`
	DueTasks
}
