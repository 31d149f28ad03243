package server

import (
	"fmt"
	"maps"
	"slices"
)

// declareSchedules declares the schedules of the settings.
func (p *parts) declareSchedules() error {
	for _, name := range slices.Sorted(maps.Keys(p.cfg.Schedules)) {
		s := p.cfg.Schedules[name]
		spec, _ := s.Spec()
		if err := p.check(s.Tag, []byte(s.Body)); err != nil {
			return fmt.Errorf("schedules.%s.body: %w", name, err)
		}
		if err := p.scheduler.DeclareSchedule(name, spec, s.Tag, s.Body, s.Options()...); err != nil {
			return fmt.Errorf("schedules.%s: %w", name, err)
		}
	}
	return nil
}
