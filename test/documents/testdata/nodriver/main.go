// Nodriver opens a SQLite file without the driver.
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"github.com/delaytask/delaytask/scheduler"
)

func main() {
	_, err := scheduler.Open(context.Background(), "sqlite:nodriver.db", scheduler.Config{})
	if _, statErr := os.Stat("nodriver.db"); !errors.Is(statErr, os.ErrNotExist) {
		log.Fatal("it has made a file")
	}
	if errors.Is(err, scheduler.ErrUnknownDriver) {
		log.Fatal(err)
	}
}
