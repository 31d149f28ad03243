package scheduler_test

import (
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/scheduler"
)

// A nightly job in Berlin, over the night in which the clock skips the hour from 02:00 to 03:00.
func ExamplePreview() {
	spec := delaytask.Cron("30 2 * * *", "Europe/Berlin").Except("2027-03-30")
	ticks, _, err := scheduler.Preview(spec, time.Date(2027, 3, 26, 12, 0, 0, 0, time.UTC), 4)
	if err != nil {
		log.Fatal(err)
	}
	for _, tick := range ticks {
		fmt.Printf("%v %q\n", tick.Time, tick.Note)
	}
	// Output:
	// 2027-03-27 02:30:00 +0100 CET ""
	// 2027-03-28 03:00:00 +0200 CEST "moved: 02:30 does not exist"
	// 2027-03-29 02:30:00 +0200 CEST ""
	// 2027-03-31 02:30:00 +0200 CEST ""
}

// The night in which the hour from 02:00 to 03:00 comes twice, by two rules.
func ExamplePreview_dst() {
	spec := delaytask.Cron("30 2 * * *", "Europe/Berlin")
	for _, spec.DST = range []delaytask.DST{delaytask.DSTOnce, delaytask.DSTBoth} {
		ticks, _, err := scheduler.Preview(spec, time.Date(2027, 10, 30, 12, 0, 0, 0, time.UTC), 2)
		if err != nil {
			log.Fatal(err)
		}
		for _, tick := range ticks {
			fmt.Printf("%s %v runs: %t %q\n", spec.DST, tick.Time, !tick.Dropped, tick.Note)
		}
	}
	// Output:
	// once 2027-10-31 02:30:00 +0200 CEST runs: true "first pass of 02:30"
	// once 2027-10-31 02:30:00 +0100 CET runs: false "second pass of 02:30"
	// once 2027-11-01 02:30:00 +0100 CET runs: true ""
	// both 2027-10-31 02:30:00 +0200 CEST runs: true "first pass of 02:30"
	// both 2027-10-31 02:30:00 +0100 CET runs: true "second pass of 02:30"
}

// An error says where a line is wrong. A warning says what it may mean unexpectedly.
func ExampleSpecError() {
	_, _, err := scheduler.Preview(delaytask.Cron("30 25 * * *", ""), time.Now(), 1)
	if wrong, ok := errors.AsType[*delaytask.SpecError](err); ok {
		fmt.Println(wrong.Line, wrong.Column, wrong.Reason)
	}
	_, warnings, err := scheduler.Preview(delaytask.Cron("30 2 1 * MON", ""), time.Now(), 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(warnings[0])
	// Output:
	// 1 4 hour: end of range (25) above maximum (23): 25
	// times of day are in UTC: no zone is given
}
