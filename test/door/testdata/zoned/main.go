// Zoned asks for a tick in a zone. It embeds no zone data.
package main

import (
	"log"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/scheduler"
)

func main() {
	_, _, err := scheduler.Preview(delaytask.Cron("30 2 * * *", "Europe/Berlin"), time.Now(), 1)
	if err != nil {
		log.Fatal(err)
	}
}
