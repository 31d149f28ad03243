package doctor

import (
	"context"
	"fmt"
	"slices"
)

// checkPlans looks for indexes that statements cannot use, and asks how the database would run the hot statements.
func checkPlans(ctx context.Context, s *Subject) (found []Finding, err error) {
	unusable, err := s.inspect.UnusableIndexes(ctx)
	if err != nil {
		return nil, err
	}
	for _, index := range unusable {
		f := Finding{"index_missing", Warning,
			fmt.Sprintf("the index %s (%s) %s", index.Name, index.Columns, index.Is),
			"reads become slow as the table " + index.Table + " grows", index.Mend}
		if index.Needed() {
			f.Severity, f.Meaning = Critical,
				"statements that enter by it fail, or read the whole table: tasks are not found or start late"
		}
		found = append(found, f)
	}
	plans, err := s.inspect.Plans(ctx, unusable)
	if err != nil {
		return found, err
	}
	astray := map[string][]string{}
	var indexes []string
	for _, p := range plans {
		if !p.Good() {
			astray[p.Want], indexes = append(astray[p.Want], p.Statement), append(indexes, p.Want)
		}
	}
	slices.Sort(indexes)
	for _, index := range slices.Compact(indexes) {
		found = append(found, Finding{"index_unused", Warning,
			fmt.Sprintf("statements do not enter by %s: %s", index, few(astray[index])),
			"they read, and some lock, rows that they do not need, and become slow as the table grows",
			"ANALYZE TABLE delay_task_message"})
	}
	return found, nil
}
